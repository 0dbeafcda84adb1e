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

// TestRules checks that every alert has a severity, a summary and an action.
func TestRules(t *testing.T) {
	t.Parallel()
	total := 0
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			total++
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["action"] == "" {
				t.Errorf("%s lacks severity, summary or action", rule.Alert)
			}
		}
	}
	if total < 10 {
		t.Errorf("got %d rules, want at least 10", total)
	}
}

// TestPromtool checks the generated files with promtool.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool := need(t, "promtool", "prometheus")
	folder := t.TempDir()
	file(t, folder, "freshet-alerts.yml", generate(t, "alerts"))
	out := run(t, folder, promtool, "check", "config",
		file(t, folder, "prometheus.yml", generate(t, "prometheus", "--ops", "10.0.0.5:8081")))
	if !strings.Contains(out, "rules found") {
		t.Errorf("configuration does not load the rules:\n%s", out)
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
	panels, _ := dashboard(t)
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
