// Package examples runs the programs in examples/ against the real binary, through a proxy
// that rejects a token, returns 503 and closes connections.
package examples

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"freshet.dev/client"
	"freshet/test/testserver"
)

// proxy is between a program and the server. mu protects calls.
type proxy struct {
	next http.Handler

	mu    sync.Mutex
	calls map[string]int
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := r.Method + r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
	p.mu.Lock()
	p.calls[kind]++
	n := p.calls[kind]
	p.mu.Unlock()
	switch {
	case kind == "POST/messages" && n == 1:
		w.Header().Set("WWW-Authenticate", `Bearer realm="messages", error="invalid_token"`)
		http.Error(w, `{"reason":"the token has expired"}`, http.StatusUnauthorized)
	case kind == "POST/messages" && n == 3, kind == "POST/extend" && n == 1, kind == "PUT/messages" && n == 2:
		http.Error(w, `{"reason":"busy"}`, http.StatusServiceUnavailable)
	case kind == "POST/messages" && n == 5, kind == "PUT/messages" && n == 1:
		panic(http.ErrAbortHandler) // closes the connection
	default:
		p.next.ServeHTTP(w, r)
	}
}

func (p *proxy) count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[kind]
}

func TestPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT TESTED: python3 is not installed, so examples/consume.py was not run")
	}
	consume(t, "python3", "../../../examples/consume.py")
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	if os.Getenv("FRESHET_TEST_CLIENTS") == "" {
		t.Skip("NOT TESTED: FRESHET_TEST_CLIENTS is not set, so examples/consume.ts was not run; make test sets it")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: %s is not installed, so examples/consume.ts was not run", program)
		}
	}
	// A copy, so that the packages that npm downloads stay out of the tree.
	folder := t.TempDir()
	for name, from := range map[string]string{
		"package.json": "package.json", "package-lock.json": "package-lock.json", "tsconfig.json": "tsconfig.json",
		"consume.ts": "../../../examples/consume.ts",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = folder
	if out, err := npm.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: npm cannot download TypeScript, so examples/consume.ts was not run: %v\n%s", err,
			out)
	}
	tsc := exec.CommandContext(t.Context(), "node", "node_modules/typescript/bin/tsc")
	tsc.Dir = folder
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	consume(t, "node", filepath.Join(folder, "consume.js"))
}

// jobs are for a consumer with a lease of one second: one job takes longer than two leases,
// one fails on its first delivery, and one succeeds immediately.
var jobs = []string{
	`{"name": "slow", "seconds": 2.5}`,
	`{"name": "second time", "failures": 1}`,
	`{"name": "easy"}`,
}

// consume runs a program until it has done all jobs, and checks the subscription and the calls.
func consume(t *testing.T, program ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server := start(ctx, t)
	c, err := client.New(client.Config{BaseURL: server.URL, TokenSource: client.StaticToken(server.Token)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sub := c.Topic("jobs").Subscription("workers")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		if _, err := sub.Topic().Produce(ctx, client.Message{Value: []byte(job)}); err != nil {
			t.Fatal(err)
		}
	}
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	between := &proxy{next: httputil.NewSingleHostReverseProxy(target), calls: map[string]int{}}
	front := httptest.NewServer(between)
	defer front.Close()

	cmd := exec.CommandContext(ctx, program[0], append(program[1:], "jobs", "workers", fmt.Sprint(len(jobs)))...)
	cmd.Env = append(os.Environ(), "FRESHET_SERVER="+front.URL,
		"FRESHET_CREDENTIALS_FILE="+filepath.Join(server.DataDir, "admin.json"), "LEASE=1")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", program, err, out, problems.String())
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(got)
	if diff := cmp.Diff([]string{"easy", "second time", "slow"}, got); diff != "" {
		t.Errorf("completed jobs (-want +got):\n%s\n%s", diff, problems.String())
	}
	if stats, err := sub.Stats(ctx); err != nil || stats.Backlog != 0 {
		t.Errorf("backlog: got %d, %v, want 0", stats.Backlog, err)
	}
	if n := between.count("POST/token"); n != 2 {
		t.Errorf("token was requested %d times, want twice: at the start and after the rejection", n)
	}
	if n := between.count("POST/extend"); n < 4 {
		t.Errorf("leases were extended by %d calls, want at least 4, including the one that returned 503", n)
	}
}

func start(ctx context.Context, t *testing.T) *testserver.Server {
	t.Helper()
	dir := t.TempDir()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(ctx, binary, dir, testserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return server
}
