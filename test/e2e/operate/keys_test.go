package operate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRetiringAKey checks that a key that still seals a secret cannot be retired, whether the
// server is stopped or runs, and that a key that seals nothing can.
func TestRetiringAKey(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	serve := func() *process {
		p := start(t, nil, "serve", "--data-dir", dir, "--http", "127.0.0.1:"+port, "--https", "off", "--ops", "off")
		p.await("http://127.0.0.1:" + port + "/readyz")
		return p
	}
	key := func(code int, args ...string) string {
		t.Helper()
		out, got := run(t, nil, append([]string{"admin", "encryption-key", "--data-dir", dir}, args...)...)
		if got != code {
			t.Fatalf("encryption-key %v: exit code %d, want %d\n%s", args, got, code, out)
		}
		return out
	}
	p := serve()
	p.awaitOutput("every secret is sealed with the active encryption key")
	first := strings.TrimSuffix(key(0, "list"), " (active)")
	p.stop()

	second := key(0, "rotate")
	files := listFiles(t, dir)
	// The secrets: the administrator's account, the signing keys and the link of the first start.
	if out := key(5, "retire", first); !strings.Contains(out, "3 secrets are still sealed with key "+first) {
		t.Errorf("retire while stopped: got %q, want the number of secrets", out)
	}
	if out := key(3, "retire", "0123456789abcdef"); !strings.Contains(out, first) {
		t.Errorf("retire of an unknown key: got %q, want the existing keys", out)
	}
	if got := listFiles(t, dir); got != files {
		t.Errorf("retire changed the files in the data directory: got %s, want %s", got, files)
	}

	p = serve()
	p.awaitOutput("every secret is sealed with the active encryption key", second)
	if out := key(0, "retire", first); !strings.Contains(out, "encryption.key.before-retiring-"+first) {
		t.Errorf("retire: got %q, want the path of the copy", out)
	}
	p.stop()
	serve() // without the old key
}

// awaitOutput waits for a line in the output that contains all parts in order.
func (p *process) awaitOutput(parts ...string) {
	p.t.Helper()
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	line := regexp.MustCompile(strings.Join(parts, ".*"))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !line.MatchString(p.output()) {
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("log has no line %s:\n%s", line, p.output())
		}
	}
}

func listFiles(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}
