// Package ops tests the real binary from the operator's point of view: its metrics after
// real traffic, its log, its signals, and its responses to broken clients.
package ops

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/poll"
	"freshet/test/testserver"
)

// start runs a server with its own configuration file, and returns the path of the file.
func start(t *testing.T, settings string, args ...string) (*testserver.Server, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "freshet.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(ctx, binary, dir,
		testserver.Options{Args: append([]string{"--config", file}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server, file
}

func stop(t *testing.T, server *testserver.Server) {
	t.Helper()
	if err := server.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// call sends a request as the administrator and returns status and body.
func call(t *testing.T, server *testserver.Server, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+server.Token)
	r.Header.Set("Content-Type", "application/json")
	return send(t, r)
}

func send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// must is call for a required status.
func must(t *testing.T, server *testserver.Server, want int, method, path, body string) string {
	t.Helper()
	status, text := call(t, server, method, path, body)
	if status != want {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, status, text, want)
	}
	return text
}

// ops requests a page of the ops port.
func ops(t *testing.T, server *testserver.Server, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Ops+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, r)
}

// eventually waits until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	poll.Until(t, 20*time.Second, what, done)
}

func sendSIGHUP(t *testing.T, server *testserver.Server) {
	t.Helper()
	if err := syscall.Kill(server.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
