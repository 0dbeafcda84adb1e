// Package testserver starts the real freshet binary for tests: with a data
// directory of its own, on free ports, waited for until it is ready. It knows
// the command line and nothing of what the server does; contract and e2e tests
// share it.
package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"freshet/test/freeport"
)

// Server is a running process.
type Server struct {
	// URL is the HTTP base URL, HTTPS the other one, Ops that of the metrics.
	URL, HTTPS, Ops string
	// Stream and StreamTLS are the addresses of the stream protocol; "" unless
	// Options asked for it.
	Stream, StreamTLS string
	// DataDir is the process's data directory.
	DataDir string
	// Token is the system administrator's, ClientID and ClientSecret what its
	// service account asks for others with.
	Token, ClientID, ClientSecret string

	process *exec.Cmd
	log     string
	exited  chan struct{}
	exitErr error
}

// Options changes how a server is started. The zero value is a fresh one.
type Options struct {
	// DataDir is used instead of a new one, and then outlives the server.
	DataDir string
	// Stream has clients of the stream protocol served.
	Stream bool
	// Addresses are used instead of free ones: of HTTP, HTTPS, the metrics, the
	// stream protocol, and the same with TLS.
	Addresses []string
	// Args are further arguments of serve.
	Args []string
	// Env are further environment variables.
	Env []string
	// Ready is how long the server may take; a minute when zero.
	Ready time.Duration
	// Unready takes a server that has started, ready or not.
	Unready bool
	// Launched, when not nil, is told the id of the process before it is ready.
	Launched func(pid int)
}

// kubeVersion is what the Makefile sets too: kubectl asks the server for the
// version of its Kubernetes libraries and wants to understand the answer.
const kubeVersion = "-X k8s.io/component-base/version.gitVersion=v1.37.2" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// Binary returns the path of the freshet binary: FRESHET_BIN, or one built now
// into dir.
func Binary(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv("FRESHET_BIN"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "freshet")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", kubeVersion, "-o", path, "freshet/cmd/freshet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building freshet: %w\n%s", err, out)
	}
	return path, nil
}

// Start runs `binary serve` in a folder under dir and returns once it is ready.
// The caller has to stop it.
func Start(ctx context.Context, binary, dir string, o Options) (*Server, error) {
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, binary, dir, o)
		// Between the moment in which a port is found free and the start somebody
		// else may have taken it.
		if err == nil || attempt == 5 || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
	}
}

func start(ctx context.Context, binary, dir string, o Options) (*Server, error) {
	if o.Ready == 0 {
		o.Ready = time.Minute
	}
	if o.DataDir == "" {
		data, err := os.MkdirTemp(dir, "data-")
		if err != nil {
			return nil, err
		}
		o.DataDir = data
	}
	addresses := o.Addresses
	if addresses == nil {
		var err error
		if addresses, err = freeport.Addresses(ctx, 5); err != nil {
			return nil, err
		}
	}
	s := &Server{
		URL: "http://" + addresses[0], HTTPS: "https://" + addresses[1], Ops: "http://" + addresses[2],
		DataDir: o.DataDir, log: filepath.Join(dir, filepath.Base(o.DataDir)+".log"), exited: make(chan struct{}),
	}
	plain, secured := "off", "off"
	if o.Stream {
		s.Stream, s.StreamTLS = addresses[3], addresses[4]
		plain, secured = s.Stream, s.StreamTLS
	}
	args := append([]string{
		"serve", "--data-dir", o.DataDir, "--http", addresses[0], "--https", addresses[1], "--ops", addresses[2],
		"--stream", plain, "--stream-tls", secured,
	}, o.Args...)
	// Not CommandContext: the caller's context bounds the start, not the life.
	s.process = exec.Command(binary, args...)
	s.process.Env = append(os.Environ(), o.Env...)
	if err := s.launch(); err != nil {
		return nil, err
	}
	if o.Launched != nil {
		o.Launched(s.PID())
	}
	if err := s.awaitReady(ctx, o.Ready, o.Unready); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%w\n%s", err, s.Log())
	}
	if err := s.readCredentials(); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *Server) readCredentials() error {
	token, err := os.ReadFile(filepath.Join(s.DataDir, "admin.token"))
	if err != nil {
		return err
	}
	s.Token = strings.TrimSpace(string(token))
	text, err := os.ReadFile(filepath.Join(s.DataDir, "admin.json"))
	if err != nil {
		return err
	}
	var credentials struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(text, &credentials); err != nil {
		return fmt.Errorf("admin.json: %w", err)
	}
	s.ClientID, s.ClientSecret = credentials.ID, credentials.Secret
	return nil
}

func (s *Server) launch() error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	go func() {
		s.exitErr = s.process.Wait()
		_ = log.Close() // the process had its own handle
		close(s.exited)
	}()
	return nil
}

func (s *Server) awaitReady(ctx context.Context, timeout time.Duration, unready bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	for {
		if status, text := readiness(ctx, s.URL); status == http.StatusOK || unready &&
			strings.Contains(text, "[+]startup ok") {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the server ended before it was ready: %w", s.exitErr)
		case <-ctx.Done():
			return fmt.Errorf("the server was not ready after %s: %w",
				time.Since(began).Round(time.Millisecond), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readiness is the answer of /readyz, 0 when there is none.
func readiness(ctx context.Context, base string) (status int, text string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", http.NoBody)
	if err != nil {
		return 0, ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxLog))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return 0, ""
	}
	return response.StatusCode, string(body)
}

// PID is the process's id.
func (s *Server) PID() int { return s.process.Process.Pid }

// Stop asks the server to end and waits until it has. An error means that it
// had to be killed or ended badly.
func (s *Server) Stop(timeout time.Duration) error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
		if s.exitErr != nil {
			return fmt.Errorf("the server ended badly: %w\n%s", s.exitErr, s.Log())
		}
		return nil
	case <-time.After(timeout):
		s.Kill()
		return fmt.Errorf("the server did not end within %s\n%s", timeout, s.Log())
	}
}

// Kill ends the process without warning, as a crash would.
func (s *Server) Kill() {
	_ = s.process.Process.Kill() // it may be gone already
	<-s.exited
}

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// LogFile is where everything that the server writes goes.
func (s *Server) LogFile() string { return s.log }

// maxLog is how much of the log is shown.
const maxLog = 8 << 10

// Log returns the end of what the server wrote.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	if len(text) > maxLog {
		text = text[len(text)-maxLog:]
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok {
			text = rest
		}
	}
	return string(text)
}
