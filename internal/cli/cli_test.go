package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/config"
)

type result struct {
	code     int
	out, err string
	served   *config.Config
}

// fakeServer is a server that runs with the given outcome. Its other operations panic.
type fakeServer struct {
	Server
	outcome error
	sealed  map[string]int // number of secrets under each encryption key
	served  *config.Config // of the last run
}

// Run implements servercmd.Server.
func (s *fakeServer) Run(_ context.Context, cfg *config.Config, _ func() (*config.Config, error), _ io.Writer,
	_ []string,
) error {
	s.served = cfg
	return s.outcome
}

// SealedSecrets implements servercmd.Server.
func (s *fakeServer) SealedSecrets(context.Context, *config.Config, string) (map[string]int, error) {
	return s.sealed, nil
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	return runServe(t, nil, args...)
}

func runServe(t *testing.T, outcome error, args ...string) result {
	t.Helper()
	return runSealed(t, outcome, nil, args...)
}

// runSealed runs a command line against a server that has counts secrets under each
// encryption key.
func runSealed(t *testing.T, outcome error, counts map[string]int, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	server := &fakeServer{outcome: outcome, sealed: counts}
	code := Execute(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &err}, server)
	return result{code: code, out: out.String(), err: err.String(), served: server.served}
}

func TestServeFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "freshet.yaml")
	writeFile(t, file, "http: 127.0.0.1:1\nops: 127.0.0.1:2\ndomain: example.org\n")
	r := run(t, "serve", "--config", file, "--http", "127.0.0.1:3", "--data-dir", "/d")
	if r.code != ExitOK || r.served == nil {
		t.Fatalf("got %+v, want exit code %d and a server", r, ExitOK)
	}
	if c := r.served; c.HTTP != "127.0.0.1:3" || c.Ops != "127.0.0.1:2" || c.Domain != "example.org" ||
		c.DataDir != "/d" ||
		c.HTTPS != config.Default().HTTPS {
		t.Errorf("got %+v, want flags over the file over the defaults", c)
	}
}

func TestServeRefusesPublicHTTP(t *testing.T) {
	t.Parallel()
	if r := run(t, "serve", "--http", "0.0.0.0:8080"); r.code != ExitError || r.served != nil ||
		!strings.Contains(r.err, "--insecure-http") {
		t.Errorf("got %+v, want exit code %d and a hint at --insecure-http", r, ExitError)
	}
	if r := run(t, "serve", "--http", "0.0.0.0:8080", "--insecure-http"); r.code != ExitOK || r.served == nil {
		t.Errorf("got %+v, want exit code %d and a server", r, ExitOK)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"ok":       {nil, ExitOK},
		"other":    {errors.New("x"), ExitError},
		"notfound": {errs.New(errs.NotFound, "x"), ExitNotFound},
		"denied":   {fmt.Errorf("wrapped: %w", errs.New(errs.Denied, "x")), ExitDenied},
		"unknown":  {errs.New(errs.Unauthenticated, "x"), ExitDenied},
		"conflict": {errs.New(errs.Conflict, "x"), ExitConflict},
		"timeout":  {fmt.Errorf("wrapped: %w", context.DeadlineExceeded), ExitTimeout},
	} {
		if r := runServe(t, c.err, "serve"); r.code != c.want {
			t.Errorf("%s: exit code %d, want %d", name, r.code, c.want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"no-such-command"},
		{"serve", "--no-such-flag"},
		{"serve", "extra"},
		{"config", "no-such"},
		{"config", "check"},
		{"config", "print", "a", "b"},
		{"version", "-o", "xml"},
		{"health", "--server", "nonsense"},
		{"health", "--timeout", "soon"},
		{"context", "show", "-o", "xml"},
		{"context", "lst"},
		{"serve", "--context", "x"},
	} {
		r := run(t, args...)
		if r.code != ExitUsage {
			t.Errorf("%v: exit code %d (%s), want %d", args, r.code, r.err, ExitUsage)
		}
		if !strings.Contains(r.err, "--help' for its usage") && !strings.Contains(r.err, "Did you mean") {
			t.Errorf("%v: error %q, want a hint at --help or a suggestion", args, r.err)
		}
	}
}

func TestConfigCheckAndPrint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	writeFile(t, good, "domain: example.org\n")
	writeFile(t, bad, "domain: 'no good'\nlog: {level: loud}\n")
	if r := run(t, "config", "check", good); r.code != ExitOK || !strings.Contains(r.out, "is valid") {
		t.Errorf("got %+v, want exit code %d and %q", r, ExitOK, "is valid")
	}
	if r := run(t, "config", "check", bad); r.code != ExitError || !strings.Contains(r.err, "domain:") ||
		!strings.Contains(r.err, "log.level:") {
		t.Errorf("got %+v, want exit code %d and both fields named", r, ExitError)
	}
	if r := run(t, "config", "check", good+".missing"); r.code != ExitError {
		t.Errorf("got %+v, want exit code %d", r, ExitError)
	}
	r := run(t, "config", "print", good)
	cfg, err := config.Parse([]byte(r.out))
	if err != nil || cfg.Domain != "example.org" {
		t.Errorf("got %v, %v; want domain example.org", cfg, err)
	}
	if r := run(t, "config", "print"); r.code != ExitOK || !strings.Contains(r.out, "freshet.localhost") {
		t.Errorf("got %+v, want exit code %d and the default domain", r, ExitOK)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if r := run(t, "version"); r.code != ExitOK || !strings.HasPrefix(r.out, "freshet ") {
		t.Errorf("got %+v, want exit code %d and the version", r, ExitOK)
	}
	var info map[string]string
	if err := json.Unmarshal([]byte(run(t, "version", "-o", "json").out), &info); err != nil || info["go"] == "" {
		t.Errorf("got %v, %v; want the version of Go", info, err)
	}
	if err := yaml.Unmarshal([]byte(run(t, "version", "-o", "yaml").out), &info); err != nil || info["version"] == "" {
		t.Errorf("got %v, %v; want the version", info, err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	ready := true
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/readyz":
			<-hang
		case !ready:
			http.Error(w, "[-]etcd failed", http.StatusServiceUnavailable)
		case r.URL.Query().Has("verbose"):
			_, _ = io.WriteString(w, "[+]etcd ok\n")
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	if r := run(t, "health", "--server", server.URL); r.code != ExitOK || r.out != "ready\n" {
		t.Errorf("got %+v, want exit code %d and ready", r, ExitOK)
	}
	if r := run(t, "health", "-v", "--server", server.URL); r.code != ExitOK || !strings.Contains(r.out, "[+]etcd ok") {
		t.Errorf("got %+v, want exit code %d and every check", r, ExitOK)
	}
	if r := run(t, "health", "--server", server.URL+"/slow", "--timeout", "20ms"); r.code != ExitTimeout {
		t.Errorf("got %+v, want exit code %d", r, ExitTimeout)
	}
	ready = false
	if r := run(t, "health", "--server", server.URL); r.code != ExitError || !strings.Contains(r.err, "etcd failed") {
		t.Errorf("got %+v, want exit code %d and the failed check", r, ExitError)
	}
	if r := run(t, "health", "--server", "http://127.0.0.1:1"); r.code != ExitError {
		t.Errorf("got %+v, want exit code %d", r, ExitError)
	}
}

func TestHealthTrustsTheGivenAuthority(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if r := run(t, "health", "--server", server.URL); r.code == ExitOK {
		t.Error("an unknown authority was trusted")
	}
	if r := run(t, "health", "--server", server.URL, "--ca-file", ca); r.code != ExitOK {
		t.Errorf("got %+v, want exit code %d", r, ExitOK)
	}
	writeFile(t, ca, "nonsense")
	if r := run(t, "health", "--server", server.URL, "--ca-file", ca); r.code != ExitError {
		t.Errorf("got %+v, want exit code %d", r, ExitError)
	}
}

func TestKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := run(t, "kubeconfig", "--data-dir", dir); r.code != ExitError {
		t.Errorf("got %+v, want exit code %d", r, ExitError)
	}
	writeFile(t, filepath.Join(dir, "admin.token"), "s3cret\n")
	writeFile(t, filepath.Join(dir, "kubeconfig"), "clusters:\n- name: x\n  cluster:\n    server: "+
		"https://stream.example:9443\n    certificate-authority-data: cGVt\n")
	tests := map[string]struct {
		args []string
		want []string
		code int
	}{
		"as recorded": {nil, []string{
			"server: https://stream.example:9443", "certificate-authority-data: cGVt",
			"namespace: default", "- auth", "- local", dir,
		}, ExitOK},
		"its address": {
			[]string{"--server", "https://stream.example:9443", "-n", "acme"},
			[]string{"server: https://stream.example:9443", "namespace: acme", "--server=https://stream.example:9443"},
			ExitOK,
		},
		"another address": {[]string{"--server", "https://h:1"}, nil, ExitDenied},
		"a token inside":  {[]string{"--static-token"}, []string{"token: s3cret\n"}, ExitOK},
		"plain HTTP":      {[]string{"--server", "http://127.0.0.1:8080"}, nil, ExitDenied},
	}
	for name, tc := range tests {
		r := run(t, append([]string{"kubeconfig", "--data-dir", dir}, tc.args...)...)
		if r.code != tc.code {
			t.Errorf("%s: got %+v, want exit code %d", name, r, tc.code)
		}
		for _, want := range tc.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: %q missing in\n%s", name, want, r.out)
			}
		}
		if strings.Contains(r.out, "s3cret") != (name == "a token inside") {
			t.Errorf("%s: the token must be printed only with --static-token:\n%s", name, r.out)
		}
	}
}

// parseError returns the error of parsing a command line, up to the first shell operator.
func parseError(line string) error {
	words := strings.Fields(line)
	for i, word := range words {
		if strings.HasPrefix(word, "#") || word == "|" || word == "||" || word == ">" || word == "&&" {
			words = words[:i]
			break
		}
	}
	fresh := newRoot(&command.Env{Getenv: func(string) string { return "" }}, nil)
	target, rest, err := fresh.Find(words[1:])
	if err == nil {
		err = target.ParseFlags(rest)
	}
	if err == nil && target.Args != nil {
		err = target.Args(target, target.Flags().Args())
	}
	return err
}

// TestDocumentedCommands checks that every freshet command line in the documentation, in
// blocks and in running text, parses.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("(?m)(?:^|`|[(=/ ]|until )(freshet " +
		"(?:serve|config|health|kubeconfig|admin|version|login|context|auth|get|describe|apply|diff|delete|wait|" +
		"org|sa|apikey|grant|can-i)[^`\n);]*)")
	count := 0
	for _, file := range append(files, "../../README.md", "../../docs/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range command.FindAllSubmatch(text, -1) {
			line := string(found[1])
			if slices.Contains([]string{
				"freshet admin", "freshet config", "freshet config check",
				"freshet serve --help", "freshet context use", "freshet grant",
			}, line) {
				continue
			}
			count++
			if err := parseError(line); err != nil {
				t.Errorf("%s: %q: %v", file, line, err)
			}
		}
	}
	if count < 15 {
		t.Errorf("found %d command lines, want at least 15: check the pattern", count)
	}
}

// TestDeprecatedCluster checks that 'freshet cluster' still runs the commands of 'freshet
// ensemble', and warns on standard error only.
func TestDeprecatedCluster(t *testing.T) {
	t.Parallel()
	const warning = `"freshet cluster" is deprecated; use "freshet ensemble"`
	dir := t.TempDir()
	initArgs := func(family, out string) []string {
		return []string{
			family, "init", out, filepath.Join(dir, family), "--base-url", "https://freshet.example.com",
			"a=10.0.0.1", "b=10.0.0.2", "c=10.0.0.3",
		}
	}
	if r := run(t, initArgs("cluster", "--output")...); r.code != ExitOK || strings.Count(r.err, warning) != 1 ||
		strings.Contains(r.out, warning) || !strings.Contains(r.out, "freshet ensemble join") {
		t.Errorf("cluster init: got %+v, want exit code %d and the warning on standard error", r, ExitOK)
	}
	join := []string{
		"cluster", "join", filepath.Join(dir, "cluster", "a.bundle"), "--data-dir", filepath.Join(dir, "data"),
		"--config", filepath.Join(dir, "a.yaml"),
	}
	if r := run(t, join...); r.code != ExitOK || !strings.Contains(r.err, warning) {
		t.Errorf("cluster join: got %+v, want exit code %d and the warning", r, ExitOK)
	}
	if r := run(t, initArgs("ensemble", "--out")...); r.code != ExitOK || r.err != "" {
		t.Errorf("ensemble init: got %+v, want exit code %d and no warning", r, ExitOK)
	}
}

// TestDeprecatedClusterRefusesConnectionFlags checks that the alias keeps the check that
// the root command does for all other commands.
func TestDeprecatedClusterRefusesConnectionFlags(t *testing.T) {
	t.Parallel()
	if r := run(t, "cluster", "join", "a.bundle", "--context", "x"); r.code != ExitUsage ||
		!strings.Contains(r.err, "--context has no effect") {
		t.Errorf("got %+v, want exit code %d and that --context has no effect", r, ExitUsage)
	}
}

func TestDeprecatedClusterIsHidden(t *testing.T) {
	t.Parallel()
	if r := run(t, "--help"); !strings.Contains(r.out, "\n  ensemble ") || strings.Contains(r.out, "\n  cluster ") {
		t.Errorf("got %s, want ensemble and not cluster", r.out)
	}
	if r := run(t, "docs", "json"); strings.Contains(r.out, `"freshet cluster`) {
		t.Errorf("docs json: got %s, want no freshet cluster", r.out)
	}
	if r := run(t, "cluster", "--help"); r.code != ExitOK || !strings.Contains(r.out, "freshet ensemble init") {
		t.Errorf("cluster --help: got %+v, want the examples of freshet ensemble", r)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"serve", "--help"}, {"config"}} {
		if r := run(t, args...); r.code != ExitOK || !strings.Contains(r.out, "Examples:") || r.served != nil {
			t.Errorf("%v: got %+v, want exit code %d and the help", args, r, ExitOK)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
