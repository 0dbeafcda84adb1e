package generatecmd_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"freshet/internal/cli/command"
	"freshet/internal/cli/generatecmd"
)

// generate runs the command and returns its output.
func generate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	env := &command.Env{Streams: command.Streams{Out: &out, Err: &out}, Getenv: func(string) string { return "" }}
	cmd := generatecmd.Commands(env)[0]
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

var (
	named = regexp.MustCompile(`freshet_[a-z_]+`)
	// The reference shortens the second name of a pair: `freshet_x_messages_total`, `…_bytes_total`.
	short = regexp.MustCompile(
		"`freshet_namespace_(produced|delivered)_messages_total`, `…_(produced|delivered)_bytes_total`")
)

// TestMetricsExist checks that docs/reference/metrics.md has every metric of the templates.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, name := range named.FindAllString(string(page), -1) {
		known[name] = true
	}
	for _, pair := range short.FindAllStringSubmatch(string(page), -1) {
		known["freshet_namespace_"+pair[2]+"_bytes_total"] = true
	}
	for _, what := range []string{"grafana", "grafana --ensemble", "alerts"} {
		text, err := generate(t, strings.Fields(what)...)
		if err != nil {
			t.Fatal(err)
		}
		names := named.FindAllString(text, -1)
		if len(names) < 10 {
			t.Errorf("%s names %d metrics, want at least 10", what, len(names))
		}
		for _, name := range names {
			if !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s names the metric %s, which docs/reference/metrics.md does not have", what, name)
			}
		}
	}
}

// TestTextsAreWellFormed checks that the output is valid YAML, JSON or a valid unit.
func TestTextsAreWellFormed(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"prometheus", "alerts", "compose"} {
		text, err := generate(t, what)
		if err != nil {
			t.Fatal(err)
		}
		var value map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &value); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if strings.Contains(text, "[[") {
			t.Errorf("%s has placeholders that were not filled in:\n%s", what, text)
		}
	}
	for _, args := range [][]string{{"grafana"}, {"grafana", "--ensemble"}} {
		text, err := generate(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid([]byte(text)) || strings.Contains(text, "@") {
			t.Errorf("%q: got no JSON, or a filter that was not filled in", args)
		}
	}
	text, err := generate(t, "systemd", "--config", "/etc/freshet.yaml")
	if err != nil || !strings.Contains(text,
		"\nExecStart=/usr/local/bin/freshet serve --data-dir /var/lib/freshet --config /etc/freshet.yaml\n") {
		t.Errorf("got %v\n%s", err, text)
	}
}

// TestFlagsCannotAddLines checks that flag values cannot inject lines or syntax.
func TestFlagsCannotAddLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"systemd", "--binary", "/bin/x\nExecStartPre=/bin/y"},
		{"systemd", "--config", "a b"},
		{"prometheus", "--ops", "a\"]"},
		{"prometheus", "--ops", "127.0.0.1:8081", "--job", "a\nb"},
		{"alerts", "--job", "a\"} or vector(1) #"},
		{"alerts", "--runbook", "https://example.com/\"\n"},
		{"compose", "--image", "a\nprivileged: true"},
		{"completion", "csh"},
	} {
		if text, err := generate(t, args...); err == nil {
			t.Errorf("%q: got no error and\n%s", args, text)
		}
	}
}

// TestTargets checks that --ops takes the addresses of all members, with and without names.
func TestTargets(t *testing.T) {
	t.Parallel()
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	one := []target{{Targets: []string{"10.0.0.5:8081"}}}
	three := []target{
		{[]string{"10.0.0.1:8081"}, map[string]string{"instance": "a"}},
		{[]string{"10.0.0.2:8081"}, map[string]string{"instance": "b"}},
		{[]string{"[::1]:8081"}, map[string]string{"instance": "c"}},
	}
	for name, tc := range map[string]struct {
		args []string
		job  string
		want []target
	}{
		"one server": {[]string{"--ops", "10.0.0.5:8081"}, "freshet", one},
		"commas":     {[]string{"--ops", "a=10.0.0.1:8081,b=10.0.0.2:8081,c=[::1]:8081"}, "freshet", three},
		"repeated":   {[]string{"--ops", "a=10.0.0.1:8081", "--ops", "b=10.0.0.2:8081,c=[::1]:8081"}, "freshet", three},
		"job":        {[]string{"--ops", "10.0.0.5:8081", "--job", "production"}, "production", one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := generate(t, append([]string{"prometheus"}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Configs []struct {
					Job     string   `json:"job_name"`
					Targets []target `json:"static_configs"`
				} `json:"scrape_configs"`
			}
			if err := yaml.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Configs) != 1 || got.Configs[0].Job != tc.job ||
				!reflect.DeepEqual(got.Configs[0].Targets, tc.want) {
				t.Errorf("got %+v, want the job %s with %+v", got.Configs, tc.job, tc.want)
			}
		})
	}
	for _, ops := range []string{"", "a=", "=10.0.0.1:8081", "a=10.0.0.1:1,a=10.0.0.2:1", "10.0.0.1:1,b=10.0.0.1:1"} {
		if text, err := generate(t, "prometheus", "--ops", ops); err == nil {
			t.Errorf("--ops %q: got no error and\n%s", ops, text)
		}
	}
}

var (
	rowOfAlert = regexp.MustCompile(`(?m)^\| \[(Freshet[A-Za-z]+)\]\(\.\./howto/alerts\.md#([a-z]+)\) \| ([a-z]+) \|`)
	runbookOf  = regexp.MustCompile(`(?m)^### (Freshet[A-Za-z]+)$`)
)

// TestAlertsAreDocumented checks that docs/reference/alerts.md lists exactly the generated alerts, with their
// severity, and that each of them links to its section of docs/howto/alerts.md.
func TestAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	page := func(name string) string {
		text, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	listed, runbooks := map[string]string{}, map[string]bool{}
	for _, row := range rowOfAlert.FindAllStringSubmatch(page("docs/reference/alerts.md"), -1) {
		listed[row[1]] = row[3]
		if row[2] != strings.ToLower(row[1]) {
			t.Errorf("%s links to the runbook %s", row[1], row[2])
		}
	}
	for _, heading := range runbookOf.FindAllStringSubmatch(page("docs/howto/alerts.md"), -1) {
		runbooks[heading[1]] = true
	}
	text, err := generate(t, "alerts")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if got := listed[rule.Alert]; got != rule.Labels["severity"] {
				t.Errorf("reference lists %s with the severity %q, want %q", rule.Alert, got, rule.Labels["severity"])
			}
			if !runbooks[rule.Alert] {
				t.Errorf("docs/howto/alerts.md has no section for %s", rule.Alert)
			}
			want := "docs/howto/alerts.md#" + strings.ToLower(rule.Alert)
			if got := rule.Annotations["runbook_url"]; got != want {
				t.Errorf("%s: got the runbook %q, want %q", rule.Alert, got, want)
			}
			delete(listed, rule.Alert)
			delete(runbooks, rule.Alert)
		}
	}
	for alert := range listed {
		t.Errorf("reference lists %s, which is not generated", alert)
	}
	for alert := range runbooks {
		t.Errorf("docs/howto/alerts.md has a section for %s, which is not generated", alert)
	}
	text, err = generate(t, "alerts", "--runbook", "https://wiki.example.com/alerts", "--job", "production")
	if err != nil || !strings.Contains(text, `"https://wiki.example.com/alerts#freshetdown"`) ||
		!strings.Contains(text, `up{job="production"} == 0`) {
		t.Errorf("with another page and job: got %v and\n%s", err, text)
	}
}
