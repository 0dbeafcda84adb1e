// Package backup tests freshet backup and freshet restore of the real binary: under load,
// to another address, and with the server or the command killed in the middle.
package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

// binary is the path of the freshet binary.
var binary string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "freshet-backup-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if binary, err = testserver.Binary(ctx, dir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// start runs a server until the end of the test.
func start(t *testing.T, opts testserver.Options) *testserver.Server {
	t.Helper()
	server, err := testserver.Start(t.Context(), binary, t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

// freshet runs a command that must succeed, and returns its output.
func freshet(t *testing.T, args ...string) string {
	t.Helper()
	out, code := try(t, args...)
	if code != 0 {
		t.Fatalf("freshet %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// try runs a command and returns its output and exit code.
func try(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String() + stderr.String(), cmd.ProcessState.ExitCode()
}

// restored restores a backup to a new data directory and starts a server on it, with new
// addresses.
func restored(t *testing.T, backup string, change func(dataDir string)) *testserver.Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	freshet(t, "restore", backup, "--data-dir", dir)
	if change != nil {
		change(dir)
	}
	return start(t, testserver.Options{DataDir: dir})
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// call sends a request with a token and returns the response.
func call(ctx context.Context, server *testserver.Server, token, method, path,
	body string,
) (int, http.Header, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, server.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(path, "/message") && method == http.MethodPost && !strings.HasPrefix(body, "{") {
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text), err
}

// must is call for requests that must succeed; a PUT may also return 409.
func must(t *testing.T, server *testserver.Server, method, path, body string) string {
	t.Helper()
	status, _, text, err := call(t.Context(), server, server.Token, method, path, body)
	if err != nil || (status >= http.StatusBadRequest && (status != http.StatusConflict || method != http.MethodPut)) {
		t.Fatalf("%s %s: %d, %v\n%s", method, path, status, err, text)
	}
	return text
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), binary, args...)
}
