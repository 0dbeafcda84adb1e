package operations

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"freshet/test/freeport"
)

// rules returns the alert rules as Prometheus parses them.
func rules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, problems := rulefmt.Parse([]byte(generate(t, "alerts")), false, model.UTF8Validation,
		parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Error(problem)
	}
	if groups == nil {
		t.FailNow()
	}
	return groups
}

// labelUse is the use of a label in an annotation.
var labelUse = regexp.MustCompile(`\$labels\.([a-z_]+)`)

// TestRules checks that every alert has a severity, a summary, a description and a runbook, and that its
// annotations use labels that the alert has.
func TestRules(t *testing.T) {
	t.Parallel()
	total := 0
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			total++
			if rule.Labels["severity"] == "" {
				t.Errorf("%s has no severity", rule.Alert)
			}
			for _, name := range []string{"summary", "description", "runbook_url"} {
				if rule.Annotations[name] == "" {
					t.Errorf("%s has no %s", rule.Alert, name)
				}
				for _, use := range labelUse.FindAllStringSubmatch(rule.Annotations[name], -1) {
					if !slices.Contains(labelsOf(t, rule.Expr), use[1]) {
						t.Errorf("%s: %s uses the label %s, which the alert does not have", rule.Alert, name, use[1])
					}
				}
			}
		}
	}
	if total < 10 {
		t.Errorf("got %d rules, want at least 10", total)
	}
}

// labelsOf returns the labels of an expression's result: those by which it is aggregated, or else the labels of
// a target.
func labelsOf(t *testing.T, text string) (labels []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	found := false
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		aggregation, ok := node.(*parser.AggregateExpr)
		outermost := !slices.ContainsFunc(path, func(n parser.Node) bool {
			_, inner := n.(*parser.AggregateExpr)
			return inner
		})
		if ok && outermost && !found {
			labels, found = aggregation.Grouping, true
		}
		return nil
	})
	if !found {
		return []string{"job", "instance"}
	}
	return labels
}

// TestPromtool checks the generated files with promtool.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool := need(t, "promtool", "prometheus")
	folder := t.TempDir()
	file(t, folder, "freshet-alerts.yml", generate(t, "alerts"))
	for _, args := range [][]string{
		{"--ops", "10.0.0.5:8081"},
		{"--ops", "a=10.0.0.1:8081,b=10.0.0.2:8081", "--ops", "c=10.0.0.3:8081", "--job", "production"},
	} {
		out := run(t, folder, promtool, "check", "config",
			file(t, folder, "prometheus.yml", generate(t, append([]string{"prometheus"}, args...)...)))
		if !strings.Contains(out, "rules found") {
			t.Errorf("%q: configuration does not load the rules:\n%s", args, out)
		}
	}
}

// apiResponse is a response of Prometheus's API.
type apiResponse struct {
	Status, Error string
	Data          struct {
		Result        []json.RawMessage
		ActiveTargets []struct{ Health, LastError string }
		Groups        []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
}

// TestPrometheus lets Prometheus scrape a real server with the generated files: every panel
// of the dashboard has data, every rule is evaluated, and a healthy server raises no alert.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	program := need(t, "prometheus", "prometheus")
	server := activeServer(t)
	base := prometheus(t, program, strings.TrimPrefix(server.Ops, "http://"))
	query := func(path string) (a apiResponse) {
		if err := json.Unmarshal([]byte(get(t, base+"/api/v1/"+path)), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	until(t, time.Minute, func() string {
		targets := query("targets").Data.ActiveTargets
		if len(targets) != 1 || targets[0].Health != "up" {
			return fmt.Sprintf("target is not up: %v", targets)
		}
		return ""
	})
	panels, _ := dashboard(t, "server")
	for _, text := range expressions(panels) {
		until(t, 30*time.Second, func() string {
			switch a := query("query?query=" + url.QueryEscape(text)); {
			case a.Status != "success":
				return text + ": " + a.Error
			case len(a.Data.Result) == 0:
				return text + " returned no data"
			}
			return ""
		})
	}
	until(t, 30*time.Second, func() string {
		for _, group := range query("rules").Data.Groups {
			for _, rule := range group.Rules {
				if rule.Health != "ok" {
					return fmt.Sprintf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
				}
				if rule.State != "inactive" {
					return fmt.Sprintf("alert %s is %s for a healthy server", rule.Name, rule.State)
				}
			}
		}
		return ""
	})
}

// prometheus starts Prometheus with the generated files, but a shorter scrape interval,
// and returns its base URL.
func prometheus(t *testing.T, program, ops string) string {
	t.Helper()
	folder := t.TempDir()
	file(t, folder, "freshet-alerts.yml", generate(t, "alerts"))
	config := file(t, folder, "prometheus.yml",
		strings.ReplaceAll(generate(t, "prometheus", "--ops", ops), "interval: 15s", "interval: 1s"))
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	address := addresses[0]
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // ended by the signal
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of Prometheus:\n%s", text)
		}
	})
	base := "http://" + address
	until(t, 30*time.Second, func() string { // it listens before it is ready, and answers 503 until then
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/-/ready", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return "Prometheus is not ready: " + response.Status
		}
		return ""
	})
	return base
}
