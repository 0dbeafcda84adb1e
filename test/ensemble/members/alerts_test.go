package members_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/freeport"
)

// prometheus is a running Prometheus.
type prometheus struct {
	*testing.T
	base string
}

// response is a response of its API.
type response struct {
	Data struct {
		Result []json.RawMessage
		Alerts []struct{ Labels map[string]string }
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
}

func (p *prometheus) get(path string) (r response) {
	p.Helper()
	ctx := context.WithoutCancel(p.Context()) // also called after the test
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/api/v1/"+path, http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return response{} // it starts
	}
	defer got.Body.Close()
	_ = json.NewDecoder(got.Body).Decode(&r) // while it starts, it responds with text
	return r
}

// startPrometheus starts Prometheus with the generated configuration of the ensemble, but shorter intervals.
func startPrometheus(t *testing.T, g *ensemble) *prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("NOT TESTED: prometheus is not installed (Debian: prometheus)")
	}
	targets := make([]string, 0, len(g.Members))
	for _, m := range g.Members {
		targets = append(targets, m.Name+"="+strings.TrimPrefix(m.Ops(), "http://"))
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"freshet-alerts.yml": generate(t, "alerts"),
		"prometheus.yml": strings.ReplaceAll(generate(t, "prometheus", "--ops", strings.Join(targets, ",")),
			"interval: 15s", "interval: 1s"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+addresses[0])
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // ended by the signal
	})
	return &prometheus{t, "http://" + addresses[0]}
}

func generate(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, append([]string{"generate"}, args...)...).Output()
	if err != nil {
		t.Fatalf("freshet generate %v: %v", args, err)
	}
	return string(out)
}

// alerts returns the alerts that fire or will fire soon, with the member that each is about.
func (p *prometheus) alerts() (list []string) {
	for _, a := range p.get("alerts").Data.Alerts {
		list = append(list, a.Labels["alertname"]+" "+a.Labels["member"]+a.Labels["instance"])
	}
	return list
}

// ofEnsemble are the expressions of the dashboard that need several members.
var ofEnsemble = regexp.MustCompile(`freshet_(ensemble|log|nats|integrity)_`)

// TestEnsembleAlerts lets Prometheus scrape three members with the generated files: every rule can be evaluated,
// healthy members raise no alert, the panels about members have data, and a killed member raises alerts about
// it alone.
func TestEnsembleAlerts(t *testing.T) {
	g := start(t)
	p := startPrometheus(t, g)
	problem := "nothing was tried"
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("problem of the rules: %q; alerts: %v", problem, p.alerts())
		}
	})
	await(t, "all rules evaluated and no alert", 3*time.Minute, func() bool {
		problem = ""
		groups := p.get("rules").Data.Groups
		for _, group := range groups {
			for _, rule := range group.Rules {
				// A member that begins may have returned an error, which is no alert yet.
				quiet := rule.State == "inactive" || rule.Name == "FreshetErrors" && rule.State == "pending"
				if rule.Health != "ok" || !quiet {
					problem = fmt.Sprintf("rule %s: %s, %s %s", rule.Name, rule.State, rule.Health, rule.LastError)
				}
			}
		}
		if len(groups) < 2 || len(p.get("query?query="+url.QueryEscape(`up == 1`)).Data.Result) != 3 {
			problem = "Prometheus has not loaded the rules, or does not scrape three members"
		}
		return problem == ""
	})
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(generate(t, "grafana", "--ensemble")), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "10s", "$job", "freshet")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if !ofEnsemble.MatchString(target.Expr) {
				continue
			}
			expr := variables.Replace(target.Expr)
			await(t, "data of "+expr, time.Minute, func() bool {
				return len(p.get("query?query="+url.QueryEscape(expr)).Data.Result) > 0
			})
		}
	}
	g.Members[2].Kill()
	await(t, "the alerts about c", time.Minute, func() bool {
		all := " " + strings.Join(p.alerts(), ", ") + ","
		return strings.Count(all, " FreshetDown c,") == 1 && strings.Count(all, " FreshetMemberDown c,") == 1 &&
			strings.Count(all, " FreshetLogReplicasMissing c,") == 1
	})
	for _, alert := range p.alerts() {
		if strings.HasPrefix(alert, "FreshetMemberDown") && alert != "FreshetMemberDown c" {
			t.Errorf("got the alert %s, want none about a live member", alert)
		}
	}
}
