package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"freshet/internal/identity"
)

func TestEncryptionKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := run(t, "admin", "encryption-key", "list", "--data-dir", dir); r.code == ExitOK {
		t.Errorf("keys of a server that has never run: got %+v, want an error", r)
	}
	sealer, err := identity.OpenSealer(filepath.Join(dir, "encryption.key"))
	if err != nil {
		t.Fatal(err)
	}
	first := sealer.KeyIDs()[0]
	do := func(code int, args ...string) string {
		t.Helper()
		r := run(t, append([]string{"admin", "encryption-key", "--data-dir", dir}, args...)...)
		if r.code != code {
			t.Errorf("%v: got %+v, want exit code %d", args, r, code)
		}
		return strings.TrimSpace(r.out)
	}
	if got := do(ExitOK, "list"); got != first+" (active)" {
		t.Errorf("list: %q, want %s alone", got, first)
	}
	second := do(ExitOK, "rotate")
	if got := do(ExitOK, "list"); got != second+" (active)\n"+first {
		t.Errorf("list after rotate: %q, want %s, then %s", got, second, first)
	}
	do(ExitConflict, "retire", second)
	do(ExitNotFound, "retire", "0123456789abcdef")
	do(ExitNotFound, "activate", "nonsense")
	if r := runSealed(t, nil, map[string]int{first: 3}, "admin", "encryption-key", "--data-dir", dir, "retire",
		first); r.code != ExitConflict ||
		!strings.Contains(r.err, "3 secrets are still sealed with key "+first) {
		t.Errorf("retire a key that is in use: got %+v, want exit code %d and the number of secrets", r, ExitConflict)
	}
	third := do(ExitOK, "add")
	do(ExitOK, "activate", third)
	do(ExitOK, "retire", first)
	if got := do(ExitOK, "list"); got != third+" (active)\n"+second {
		t.Errorf("list after retire: %q, want %s, then %s", got, third, second)
	}
	do(ExitUsage)
	do(ExitUsage, "unknown")
	do(ExitUsage, "retire")
	do(ExitUsage, "list", "x")
}

// accountServer serves the requests of reset-credentials. mu protects its fields.
type accountServer struct {
	mu     sync.Mutex
	exists bool
	data   string
	calls  []string
}

func (s *accountServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	reply := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer secret":
		reply(401, map[string]any{"message": "not authenticated"})
	case r.Method == http.MethodPost:
		s.exists, s.data = true, "eyJmcmVzaCI6dHJ1ZX0="
		reply(201, map[string]any{})
	case !s.exists:
		reply(404, map[string]any{"message": "no such account"})
	case r.Method == http.MethodPatch:
		s.data = "eyJmcmVzaCI6dHJ1ZX0="
		reply(200, map[string]any{})
	default:
		reply(200, map[string]any{"status": map[string]any{"privateKeyData": s.data}})
	}
}

func TestResetCredentials(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		server *accountServer
		token  string
		args   []string
		code   int
		calls  string
	}{
		"lost":    {&accountServer{exists: true, data: "eyJvbGQiOjF9"}, "secret", nil, ExitOK, "GET,PATCH,GET"},
		"deleted": {&accountServer{}, "secret", nil, ExitOK, "GET,POST,GET"},
		"another account": {
			&accountServer{exists: true, data: "eyJvbGQiOjF9"}, "secret",
			[]string{"--service-account", "ci", "--out", "admin.json"},
			ExitOK, "GET,PATCH,GET",
		},
		"unknown account": {
			&accountServer{}, "secret",
			[]string{"--service-account", "ci", "--out", "admin.json"},
			ExitNotFound, "GET",
		},
		"no file given": {&accountServer{exists: true}, "secret", []string{"--service-account", "ci"}, ExitUsage, ""},
		"another token": {&accountServer{exists: true}, "other", nil, ExitDenied, "GET"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			web := httptest.NewServer(tc.server)
			t.Cleanup(web.Close)
			writeFile(t, filepath.Join(dir, "admin.token"), tc.token+"\n")
			writeFile(t, filepath.Join(dir, "kubeconfig"),
				"clusters:\n- name: x\n  cluster:\n    server: "+web.URL+"\n")
			out := filepath.Join(dir, "admin.json")
			args := []string{"admin", "reset-credentials", "--data-dir", dir}
			for _, arg := range tc.args {
				args = append(args, strings.Replace(arg, "admin.json", out, 1))
			}
			r := run(t, args...)
			if r.code != tc.code {
				t.Fatalf("got %+v, want exit code %d", r, tc.code)
			}
			var calls []string
			for _, call := range tc.server.calls {
				method, _, _ := strings.Cut(call, " ")
				calls = append(calls, method)
			}
			if got := strings.Join(calls, ","); got != tc.calls {
				t.Errorf("calls %v, want %s", tc.server.calls, tc.calls)
			}
			text, err := os.ReadFile(out)
			if tc.code != ExitOK {
				if err == nil {
					t.Errorf("a failed reset wrote %s", text)
				}
				return
			}
			if string(text) != `{"fresh":true}` {
				t.Errorf("written: %q, %v; want the new credentials", text, err)
			}
			if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode: %v, %v; want 0600", info, err)
			}
		})
	}
}

// TestResetCredentialsOnlyAtTheServer checks that the administrator's token goes only to an address
// that the data directory names.
func TestResetCredentialsOnlyAtTheServer(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(other.Close)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "admin.token"), "secret")
	writeFile(t, filepath.Join(dir, "admin.json"), `{"client_id": "i", "client_secret": "s", `+
		`"client_email": "admin@default.x", "issuer_url": "http://127.0.0.1:1"}`)
	r := run(t, "admin", "reset-credentials", "--data-dir", dir, "--server", other.URL)
	if r.code != ExitDenied || requests.Load() > 0 || !strings.Contains(r.err, "is not sent to") {
		t.Errorf("got %+v and %d requests, want exit code %d and no request", r, requests.Load(), ExitDenied)
	}
}

func TestResetCredentialsWithoutAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := run(t, "admin", "reset-credentials", "--data-dir", dir); r.code != ExitError {
		t.Errorf("no data directory: got %+v, want exit code %d", r, ExitError)
	}
	writeFile(t, filepath.Join(dir, "admin.token"), "secret")
	r := run(t, "admin", "reset-credentials", "--data-dir", dir, "--server", "http://127.0.0.1:1")
	if r.code != ExitError || !strings.Contains(r.err, "must be running") {
		t.Errorf("no server: got %+v, want exit code %d and that it must be running", r, ExitError)
	}
	writeFile(t, filepath.Join(dir, "kubeconfig"), "clusters: []")
	if r := run(t, "admin", "reset-credentials", "--data-dir", dir); r.code != ExitError {
		t.Errorf("a kubeconfig without a server: got %+v, want exit code %d", r, ExitError)
	}
}
