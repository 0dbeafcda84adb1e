package operations

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

var (
	metricName = regexp.MustCompile("`(freshet_[a-z_*]+)`")
	// The reference shortens the names after the first one of a row.
	shortName = regexp.MustCompile("`freshet_namespace_[a-z_]+`, `…")
)

// scopes reads the table of docs/reference/metrics.md that says how the series of several members are
// aggregated. It returns that text for each series, or pattern of series, of the table, and the names of all
// series of the page.
func scopes(t *testing.T) (aggregate map[string]string, all []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	page, table, found := strings.Cut(string(text), `<a id="several-members"></a>`)
	if !found {
		t.Fatal("docs/reference/metrics.md has no table of the series of several members")
	}
	aggregate = map[string]string{}
	for line := range strings.Lines(table) {
		columns := strings.Split(line, " | ")
		if len(columns) != 3 || !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, name := range metricName.FindAllStringSubmatch(columns[2], -1) {
			if _, twice := aggregate[name[1]]; twice {
				t.Errorf("table has %s twice", name[1])
			}
			aggregate[name[1]] = columns[1]
		}
	}
	for _, name := range metricName.FindAllStringSubmatch(shortName.ReplaceAllString(page, ""), -1) {
		all = append(all, name[1])
	}
	return aggregate, all
}

// scopeOf returns how the table aggregates a series; "" if the table does not have it.
func scopeOf(aggregate map[string]string, name string) string {
	if how, ok := aggregate[name]; ok {
		return how
	}
	for pattern, how := range aggregate {
		if ok, _ := path.Match(pattern, name); ok {
			return how
		}
	}
	return ""
}

// TestScopes checks that the reference says for every series how those of several members are aggregated, and
// that no alert and no panel adds up what several members report.
func TestScopes(t *testing.T) {
	t.Parallel()
	aggregate, all := scopes(t)
	if len(all) < 70 {
		t.Fatalf("got %d series of the reference, want at least 70", len(all))
	}
	for _, name := range all {
		if !strings.Contains(name, "*") && scopeOf(aggregate, name) == "" {
			t.Errorf("table of several members does not have %s", name)
		}
	}
	for _, text := range allExpressions(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok || !strings.HasPrefix(selector.Name, "freshet_") {
				return nil
			}
			var nearest *parser.AggregateExpr
			for _, outer := range path {
				if a, ok := outer.(*parser.AggregateExpr); ok {
					nearest = a
				}
			}
			how := scopeOf(aggregate, strings.TrimSuffix(selector.Name, "_bucket"))
			switch {
			case nearest == nil:
				t.Errorf("%s: %s is not aggregated, so every member has a result of its own", text, selector.Name)
			case nearest.Op == parser.SUM && strings.HasPrefix(how, "`max`"):
				t.Errorf("%s: adds up %s, which several members report; use max", text, selector.Name)
			case nearest.Op != parser.SUM && strings.HasPrefix(how, "`sum`") && !strings.Contains(how, "`max`"):
				t.Errorf("%s: does not add up %s, of which each member reports a part", text, selector.Name)
			}
			return nil
		})
	}
}
