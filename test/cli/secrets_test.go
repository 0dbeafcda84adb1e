//go:build linux

package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestCredentialsStayWithTheirServer runs commands that name another server than the one that
// the credential in use belongs to. The other server must not get a request.
func TestCredentialsStayWithTheirServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // protects received
	var received []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(other.Close)
	p := newWorkFolder(t)
	p.do(`freshet login --name work --keep-current freshet-data/admin.json`)
	for _, command := range []string{
		"freshet get mc --context local --server OTHER",
		"freshet topic list --server OTHER",
		"FRESHET_SERVER=OTHER freshet auth whoami",
		"freshet auth whoami --context work --server OTHER",
		"freshet doctor --context local --server OTHER",
		"FRESHET_TOKEN_FILE=freshet-data/admin.token FRESHET_SERVER=$SERVER_HTTP freshet get mc --server OTHER",
	} {
		out, err := bash(t.Context(), p.dir, server, strings.ReplaceAll(command, "OTHER", other.URL))
		if err == nil || !strings.Contains(out, "is not sent to "+other.URL) {
			t.Errorf("%s: got %v, want the command refused\n%s", command, err, out)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(received) > 0 {
		t.Errorf("the other server got %q, want nothing", received)
	}
	// 192.0.2.1 is an address for documentation. A connection to it would not be refused at once.
	for _, command := range []string{
		"freshet get mc --server http://192.0.2.1 --token-file freshet-data/admin.token",
		"freshet login --server http://192.0.2.1 --token-file freshet-data/admin.token",
		"freshet login --server http://192.0.2.1",
	} {
		out, err := bash(t.Context(), p.dir, server, command)
		if err == nil || !strings.Contains(out, "--insecure-http") {
			t.Errorf("%s: got %v, want the command refused\n%s", command, err, out)
		}
	}
}

// TestNoBackupOnATerminal checks that a backup is not written to a terminal.
func TestNoBackupOnATerminal(t *testing.T) {
	t.Parallel()
	p := newWorkFolder(t)
	screen := p.runOnTerminal(80, "freshet backup - --data-dir $DATA || true", "", "")
	if !strings.Contains(screen.raw, "standard output is a terminal") || len(screen.raw) > 1000 {
		t.Errorf("a terminal got %.1000q, want an error", screen.raw)
	}
}
