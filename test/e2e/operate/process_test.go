// Package operate_test runs the real binary as an operator does: with the configurations and
// commands of the documentation, from the beginning of a start, and with common errors.
package operate_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"freshet/test/freeport"
	"freshet/test/testserver"
)

// binary builds the program once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "freshet-operate-")
	if err != nil {
		return "", err
	}
	return testserver.Binary(context.Background(), dir)
})

func program(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a server process that a test controls.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    string // file with its output
	exited chan struct{}
	err    error // set when it has exited
}

// start runs freshet until the end of the test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{
		t: t, cmd: exec.Command(program(t), args...), out: filepath.Join(t.TempDir(), "out"),
		exited: make(chan struct{}),
	}
	out, err := os.Create(p.out)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = out.Close() // the process had its own descriptor
		close(p.exited)
	}()
	t.Cleanup(p.stop)
	return p
}

func (p *process) output() string {
	text, err := os.ReadFile(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// stop ends the process with SIGTERM, and fails the test if it does not exit cleanly.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have exited already
	select {
	case <-p.exited:
		if p.err != nil {
			p.t.Errorf("freshet %v exited with %v, output:\n%s", p.cmd.Args[1:], p.err, p.output())
		}
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		p.t.Errorf("freshet %v did not exit within 30 s", p.cmd.Args[1:])
	}
}

// await repeats a request until it returns 200, and fails if the process exits.
func (p *process) await(url string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if status, _, err := get(ctx, url); err == nil && status == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-p.exited:
			p.t.Fatalf("freshet %v exited with %v, output:\n%s", p.cmd.Args[1:], p.err, p.output())
		case <-ctx.Done():
			p.t.Fatalf("%s was not ready in time:\n%s", url, p.output())
		}
	}
}

// client accepts every certificate: these tests only check that the server responds.
var client = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
}}

func get(ctx context.Context, url string, headers ...string) (int, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, response.Header, response.Body.Close()
}

// freePort returns a free port.
func freePort(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// run runs a command and returns its output and exit code.
func run(t *testing.T, env []string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), cmd.ProcessState.ExitCode()
}
