package operations

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// panel is the part of a dashboard panel that the tests use.
type panel struct {
	Title   string
	ID      int
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ RefID, Expr string }
	Panels  []panel
}

// dashboards are the arguments that generate each of the dashboards.
var dashboards = map[string][]string{"server": {"grafana"}, "ensemble": {"grafana", "--ensemble"}}

// dashboard returns the panels and the variables' queries of a generated dashboard.
func dashboard(t *testing.T, name string) (panels []panel, queries []string) {
	t.Helper()
	var d struct {
		Panels     []panel
		Templating struct{ List []struct{ Query string } }
	}
	if err := json.Unmarshal([]byte(generate(t, dashboards[name]...)), &d); err != nil {
		t.Fatal(err)
	}
	for _, variable := range d.Templating.List {
		queries = append(queries, variable.Query)
	}
	return d.Panels, queries
}

// variables replaces the dashboard's variables, as Grafana does before it queries Prometheus.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$organization", ".*", "$cluster", ".*",
	"$job", "freshet", "$instance", ".*")

// expressions returns the expressions of all panels, as Prometheus receives them.
func expressions(panels []panel) (list []string) {
	for _, p := range panels {
		for _, target := range p.Targets {
			list = append(list, variables.Replace(target.Expr))
		}
		list = append(list, expressions(p.Panels)...)
	}
	return list
}

var labelValues = regexp.MustCompile(`^label_values\((.*), ([a-z]+)\)$`)

// notOnHealthyServer are the metrics that only members of an ensemble export (internal/ensemble), or servers with
// a problem, with their labels.
var notOnHealthyServer = map[string]map[string]bool{
	"freshet_cluster_problem":                   {"organization": true, "cluster": true, "reason": true},
	"freshet_ensemble_member_live":              {"member": true},
	"freshet_ensemble_clock_difference_seconds": {},
	"freshet_log_replicas_missing":              {"member": true},
	"freshet_log_replica_lag":                   {"member": true},
	"freshet_log_streams_without_majority":      {},
	"freshet_log_asked_appends_total":           {},
	"freshet_log_resent_appends_total":          {},
	"freshet_integrity_damaged_parts":           {},
	"freshet_integrity_differing_parts":         {},
	"freshet_integrity_damages_total":           {},
	"freshet_integrity_quarantine_bytes":        {},
	"freshet_nats_healthy":                      {},
	"freshet_nats_peers":                        {},
	"freshet_nats_streams_led":                  {},
	"freshet_nats_streams_without_leader":       {},
	"freshet_nats_stored_bytes":                 {},
	"freshet_nats_stored_limit_bytes":           {},
}

// allExpressions returns the expressions of both dashboards, of their variables and of the alerts.
func allExpressions(t *testing.T) (list []string) {
	t.Helper()
	for name := range dashboards {
		panels, queries := dashboard(t, name)
		list = append(list, expressions(panels)...)
		for _, query := range queries {
			parts := labelValues.FindStringSubmatch(query)
			if parts == nil {
				t.Fatalf("variable has the query %q, want label_values", query)
			}
			list = append(list, "max by ("+parts[2]+") ("+variables.Replace(parts[1])+")")
		}
	}
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			list = append(list, rule.Expr)
		}
	}
	return list
}

// TestDashboard checks that every expression of the dashboards and of the alerts is valid
// PromQL, and uses metrics and labels that a real server exports.
func TestDashboard(t *testing.T) {
	t.Parallel()
	server := activeServer(t)
	list := allExpressions(t)
	if len(list) < 80 {
		t.Fatalf("got %d expressions, want at least 80", len(list))
	}
	until(t, 30*time.Second, func() string {
		known := series(get(t, server.Ops+"/metrics"))
		known["up"] = map[string]bool{} // added by Prometheus
		maps.Copy(known, notOnHealthyServer)
		var missing []string
		for _, text := range list {
			missing = append(missing, check(t, text, known)...)
		}
		return strings.Join(missing, "\n")
	})
}

// check returns the metrics and labels of an expression that the server does not export.
func check(t *testing.T, text string, known map[string]map[string]bool) (missing []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		labels, ok := known[selector.Name]
		if !ok {
			missing = append(missing, text+": the server has no metric "+selector.Name)
			return nil
		}
		var wanted []string
		for _, matcher := range selector.LabelMatchers {
			wanted = append(wanted, matcher.Name)
		}
		for _, outer := range path {
			if sum, ok := outer.(*parser.AggregateExpr); ok {
				wanted = append(wanted, sum.Grouping...)
			}
		}
		for _, label := range wanted {
			if !labels[label] && label != "__name__" && label != "job" && label != "instance" {
				missing = append(missing, text+": "+selector.Name+" has no label "+label)
			}
		}
		return nil
	})
	return missing
}

var (
	sample = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label  = regexp.MustCompile(`([a-z_]+)="`)
)

// series returns the metrics of a page, with the labels of each.
func series(page string) map[string]map[string]bool {
	known := map[string]map[string]bool{}
	for _, found := range sample.FindAllStringSubmatch(page, -1) {
		if known[found[1]] == nil {
			known[found[1]] = map[string]bool{}
		}
		for _, name := range label.FindAllStringSubmatch(found[2], -1) {
			known[found[1]][name[1]] = true
		}
	}
	return known
}

// TestDashboardFits checks that panels have unique ids, are inside the grid of 24 columns
// and do not overlap.
func TestDashboardFits(t *testing.T) {
	t.Parallel()
	for name := range dashboards {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			panels, _ := dashboard(t, name)
			fits(t, panels)
		})
	}
}

func fits(t *testing.T, panels []panel) {
	t.Helper()
	numbers, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range panels {
		if other, twice := numbers[p.ID]; twice {
			t.Errorf("%q and %q have the id %d", p.Title, other, p.ID)
		}
		numbers[p.ID] = p.Title
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("%q is not on the grid: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken {
					t.Fatalf("%q covers %q", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestDashboardSchema checks the dashboard against the types that Grafana publishes.
func TestDashboardSchema(t *testing.T) {
	t.Parallel()
	need(t, "npm", "npm")
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("grafana")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = folder
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: npm cannot download @grafana/schema: %v\n%s", err, out)
	}
	head, err := os.ReadFile(filepath.Join("grafana", "dashboard.ts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range dashboards {
		file(t, folder, name+".ts", string(head)+generate(t, args...))
	}
	run(t, folder, filepath.Join(folder, "node_modules", ".bin", "tsc"), "--project", folder)
}
