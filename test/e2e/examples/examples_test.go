// Package examples installs the packages in examples/ as their users do, and runs their programs
// against the real binary, through a proxy that rejects a token, returns 503 and closes connections.
package examples

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"freshet.dev/client"
	"freshet/test/pages"
	"freshet/test/testserver"
)

const examples = "../../../examples"

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
	between, address := newProxy(t, server.URL)
	out, problems := run(ctx, t, "", environment(server, address),
		append(program, "jobs", "workers", fmt.Sprint(len(jobs)))...)
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	if diff := cmp.Diff([]string{"easy", "second time", "slow"}, got); diff != "" {
		t.Errorf("completed jobs (-want +got):\n%s\n%s", diff, problems)
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

// readme runs the first block of a language of a package's README, written to a file with run's arguments before it,
// and checks what it prints and that the server stored its message once although the response was lost.
func readme(t *testing.T, folder, language, file string, program ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	page, err := os.ReadFile(filepath.Join(examples, folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := pages.Blocks(string(page), language)
	if len(blocks) != 1 {
		t.Fatalf("examples/%s/README.md has %d blocks of %s, want one", folder, len(blocks), language)
	}
	if err := os.WriteFile(file, []byte(blocks[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(ctx, t)
	between, address := newProxy(t, server.URL)
	out, problems := run(ctx, t, filepath.Dir(file), environment(server, address), append(program, file)...)
	if want := "customer-7 one order\n404 topic does not exist\n"; out != want {
		t.Errorf("printed %q, want %q\n%s", out, want, problems)
	}
	if n := between.count(lostResponse); n < 3 {
		t.Errorf("messages were sent by %d calls, want at least 3: the response of the first is lost", n)
	}
	c, err := client.New(client.Config{BaseURL: server.URL, TokenSource: client.StaticToken(server.Token)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stored := 0
	for _, err := range c.Topic("orders").Read(ctx, client.Earliest) {
		if err != nil {
			t.Fatal(err)
		}
		stored++
	}
	if stored != 1 {
		t.Errorf("%d messages are stored, want one", stored)
	}
}

func environment(server *testserver.Server, address string) []string {
	return append(os.Environ(), "FRESHET_SERVER="+address,
		"FRESHET_CREDENTIALS_FILE="+filepath.Join(server.DataDir, "admin.json"), "LEASE=1")
}

// newProxy starts a proxy in front of a server and returns its address.
func newProxy(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	between := &proxy{next: httputil.NewSingleHostReverseProxy(target), calls: map[string]int{}}
	front := httptest.NewServer(between)
	t.Cleanup(front.Close)
	return between, front.URL
}

// run runs a program and returns its output, and what it wrote to standard error.
func run(ctx context.Context, t *testing.T, dir string, env []string, program ...string) (out, problems string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Dir, cmd.Env = dir, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", program, err, stdout, stderr.String())
	}
	return string(stdout), stderr.String()
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
