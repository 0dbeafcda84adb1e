// Package testserver starts the real freshet binary for tests, with its own data
// directory and free ports, and waits until the server is ready. It uses only the command
// line, /readyz and the administrator's credential files. Contract and end-to-end tests
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

// Server is a running server process.
type Server struct {
	// URL and HTTPS are the base URLs of the API, Ops is that of the metrics and profiles.
	URL, HTTPS, Ops string
	// Kafka and KafkaTLS are the addresses of the Kafka listeners; "" unless
	// Options.Kafka is set.
	Kafka, KafkaTLS string
	// DataDir is the process's data directory.
	DataDir string
	// Token is the system administrator's token. ClientID and ClientSecret are the
	// credentials of its service account.
	Token, ClientID, ClientSecret string

	process *exec.Cmd
	log     string
	exited  chan struct{}
	exitErr error
}

// Options configures a server. The zero value starts one with a new data directory.
type Options struct {
	// DataDir is an existing data directory to use; it outlives the server.
	DataDir string
	// Kafka enables the Kafka listeners.
	Kafka bool
	// Addresses replaces the free addresses: HTTP, HTTPS, metrics, Kafka, and Kafka
	// with TLS.
	Addresses []string
	// Args are additional arguments of serve.
	Args []string
	// Env are additional environment variables.
	Env []string
	// ReadyTimeout is the timeout for becoming ready; zero means one minute.
	ReadyTimeout time.Duration
	// AllowUnready returns the server as soon as it has started, ready or not.
	AllowUnready bool
	// OnLaunch, if not nil, is called with the process id before the server is ready.
	OnLaunch func(pid int)
}

// kubeVersion repeats a setting of the Makefile: kubectl queries the version of the
// server's Kubernetes libraries and must be able to parse it.
const kubeVersion = "-X k8s.io/component-base/version.gitVersion=v1.37.2" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// Binary returns the path of the freshet binary: FRESHET_BIN, or a binary that it builds
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

// Start runs `binary serve` with files below dir and returns when the server is ready.
// The caller must stop it.
func Start(ctx context.Context, binary, dir string, o Options) (*Server, error) {
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, binary, dir, o)
		// Another process may have taken a port between the check that it is free and the
		// start of the server.
		if err == nil || attempt == 5 || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
	}
}

func start(ctx context.Context, binary, dir string, o Options) (*Server, error) {
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = time.Minute
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
	if o.Kafka {
		s.Kafka, s.KafkaTLS = addresses[3], addresses[4]
		plain, secured = s.Kafka, s.KafkaTLS
	}
	args := append([]string{
		"serve", "--data-dir", o.DataDir, "--http", addresses[0], "--https", addresses[1], "--ops", addresses[2],
		"--stream", plain, "--stream-tls", secured,
	}, o.Args...)
	// Not CommandContext: the caller's context bounds the start, not the server's lifetime.
	s.process = exec.Command(binary, args...)
	s.process.Env = append(os.Environ(), o.Env...)
	if err := s.launch(); err != nil {
		return nil, err
	}
	if o.OnLaunch != nil {
		o.OnLaunch(s.PID())
	}
	if err := s.awaitReady(ctx, o.ReadyTimeout, o.AllowUnready); err != nil {
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
		_ = log.Close() // the process had its own descriptor
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
			return fmt.Errorf("server exited before it was ready: %w", s.exitErr)
		case <-ctx.Done():
			return fmt.Errorf("server was not ready after %s: %w",
				time.Since(began).Round(time.Millisecond), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readiness returns the response of /readyz; status 0 means that there was none.
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

// PID returns the process id.
func (s *Server) PID() int { return s.process.Process.Pid }

// Stop sends SIGTERM to the server and waits until it exits. It returns an error if the
// server failed or had to be killed.
func (s *Server) Stop(timeout time.Duration) error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
		if s.exitErr != nil {
			return fmt.Errorf("server exited with an error: %w\n%s", s.exitErr, s.Log())
		}
		return nil
	case <-time.After(timeout):
		s.Kill()
		return fmt.Errorf("server did not exit within %s and was killed\n%s", timeout, s.Log())
	}
}

// Kill kills the process without warning, as a crash would.
func (s *Server) Kill() {
	_ = s.process.Process.Kill() // it may have exited already
	<-s.exited
}

// Exited returns a channel that is closed when the process has exited.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// LogFile returns the path of the file with the server's output.
func (s *Server) LogFile() string { return s.log }

// maxLog bounds the part of the log that Log returns.
const maxLog = 8 << 10

// Log returns the end of the server's output.
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
