package operate_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHTTPOff starts a server with TLS only, as in production.
func TestHTTPOff(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string][]string{
		"an address":         nil,
		"a name, no port":    {"FRESHET_BASE_URL=https://stream.example"},
		"a name with a port": {"FRESHET_BASE_URL=https://stream.example:8443"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			p := start(t, extra, "serve", "--data-dir", t.TempDir(), "--http", "off", "--https", "127.0.0.1:"+port,
				"--ops", "off")
			p.await("https://127.0.0.1:" + port + "/readyz")
		})
	}
}

// TestNothingIsMissingWhileStarting calls every surface from the beginning of a start: until
// the server is ready, every response is 503 with Retry-After.
func TestNothingIsMissingWhileStarting(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	base := "http://127.0.0.1:" + port
	for _, round := range []string{"first start", "second start"} {
		t.Run(round, func(t *testing.T) {
			p := start(t, nil, "serve", "--data-dir", dir, "--http", "127.0.0.1:"+port, "--https", "127.0.0.1:0",
				"--ops", "off")
			early := map[string]int{}
			paths := []string{
				"/subjects", "/stream/subjects", "/schemas/types", "/admin/v2/tenants", "/oauth/jwks",
				"/.well-known/jwks.json",
				"/apis/cloud.vendor.io/v1alpha1/namespaces/default/messagingclusters", "/audit/v1alpha1/records",
			}
			for opened, ready := false, false; !ready; {
				if status, _, err := get(t.Context(), base+"/readyz"); err == nil && status == http.StatusOK {
					ready = true // from now on every call must succeed
				}
				for _, path := range paths {
					status, header, err := get(t.Context(), base+path, "Authorization", "Bearer "+token(dir))
					switch {
					case errors.Is(err, syscall.ECONNREFUSED) && !opened:
						// The server does not listen yet.
					case err != nil:
						t.Fatalf("%s: %v\n%s", path, err, p.output())
					case status == http.StatusServiceUnavailable && !ready:
						opened = true
						early[path]++
						if header.Get("Retry-After") == "" {
							t.Errorf("%s: 503 without Retry-After", path)
						}
					case status != http.StatusOK:
						t.Errorf("%s: got %d (ready: %v), want 503 until the server is ready, then 200", path,
							status, ready)
					}
				}
				select {
				case <-p.exited:
					t.Fatalf("server exited: %s", p.output())
				default:
				}
			}
			if len(early) != len(paths) {
				t.Errorf("calls began too late to get 503 for every path: %v", early)
			}
		})
	}
}

// TestMemberStartedAlone checks that a member of an ensemble refuses to start without its
// configuration, before it stores anything that the ensemble does not have.
func TestMemberStartedAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "a-data")
	freshet := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, program(t), args...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		return string(out), err
	}
	join := []string{"ensemble", "join", "group/a.bundle", "--data-dir", data, "--config", "a.yaml"}
	for _, args := range [][]string{
		{
			"ensemble", "init", "--base-url", "http://127.0.0.1:8080", "--out", "group", "a=10.0.0.1", "b=10.0.0.2",
			"c=10.0.0.3",
		},
		join,
	} {
		if out, err := freshet(args...); err != nil {
			t.Fatalf("freshet %v: %v\n%s", args, err, out)
		}
	}
	out, err := freshet("serve", "--data-dir", data, "--http", "127.0.0.1:0", "--https", "off", "--ops", "off")
	if err == nil || !strings.Contains(out, "data directory of member a of an ensemble") ||
		!strings.Contains(out, "--config") {
		t.Errorf("got %v, want an error that says how to start the member\n%s", err, out)
	}
	if out, err := freshet(join...); err != nil {
		t.Errorf("joining again: got %v, want an unchanged directory\n%s", err, out)
	}
}

// TestFailedStartLeavesNothing starts servers that cannot start, in a directory that does not exist, and
// checks that it still does not exist.
func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, tc := range map[string]struct {
		args, env []string
		want      string // in the output
	}{
		"HTTP port in use":  {[]string{"--http", taken.Addr().String()}, nil, "address already in use"},
		"Kafka port in use": {[]string{"--stream", taken.Addr().String()}, nil, "address already in use"},
		"no certificate": {
			[]string{"--https", "127.0.0.1:0"},
			[]string{"FRESHET_TLS_CERT_FILE=/nowhere/tls.crt", "FRESHET_TLS_KEY_FILE=/nowhere/tls.key"},
			"tls.crt",
		},
		"bad setting": {nil, []string{"FRESHET_LOG_LEVEL=loud"}, "loud"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		dir := t.TempDir()
		args := append([]string{
			"serve", "--data-dir", filepath.Join(dir, "new", "data"), "--http", "127.0.0.1:0", "--https", "off",
			"--ops", "off", "--stream", "off", "--stream-tls", "off",
		}, tc.args...)
		command := exec.CommandContext(ctx, program(t), args...)
		command.Env = append(os.Environ(), tc.env...)
		out, err := command.CombinedOutput()
		cancel()
		if err == nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: got %v, want an error with %q\n%s", name, err, tc.want, out)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: the start left %v, error %v; want nothing", name, left, err)
		}
	}
}

// token returns the administrator's token, or "none-yet" before it exists.
func token(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil {
		return "none-yet"
	}
	return strings.TrimSpace(string(text))
}
