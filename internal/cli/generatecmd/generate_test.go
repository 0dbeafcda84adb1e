package generatecmd_test

import (
	"encoding/json"
	"os"
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
	for _, what := range []string{"grafana", "alerts"} {
		text, err := generate(t, what)
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
	text, err := generate(t, "grafana")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(text)) {
		t.Error("the dashboard is not JSON")
	}
	text, err = generate(t, "systemd", "--config", "/etc/freshet.yaml")
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
		{"compose", "--image", "a\nprivileged: true"},
		{"completion", "csh"},
	} {
		if text, err := generate(t, args...); err == nil {
			t.Errorf("%q: got no error and\n%s", args, text)
		}
	}
}
