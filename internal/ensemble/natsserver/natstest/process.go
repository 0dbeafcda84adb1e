package natstest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"freshet/internal/ensemble/natsserver"
)

// childVariable is the environment variable that makes a test binary run a server.
const childVariable = "FRESHET_NATSTEST_SERVER"

// child is the configuration of a server in a process of its own.
type child struct {
	Name, Dir   string
	Routes      []string
	Credentials credentials
	Unsafe      bool
}

// process is a server in a process of its own.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	addr  string
}

// Served must be the first call of TestMain where Processes is used. In a process that was
// started as a server it runs the server and returns true when the server has ended.
func Served() bool {
	if os.Getenv(childVariable) == "" {
		return false
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
	return true
}

// serve runs a server until its input ends.
func serve(in io.Reader, out io.Writer) error {
	var c child
	r := json.NewDecoder(in)
	if err := r.Decode(&c); err != nil {
		return err
	}
	tlsConfig, err := c.Credentials.config()
	if err != nil {
		return err
	}
	s, err := natsserver.Start(context.Background(), natsserver.Options{
		Name: c.Name, Dir: c.Dir, ClusterName: clusterName, Listen: "127.0.0.1:0", Advertise: unreachableAddr,
		Routes: c.Routes, TLS: tlsConfig, Unsafe: c.Unsafe, MaxStore: maxStore,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintln(out, s.RouteAddr()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

func startProcess(c child) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin}
	if err := json.NewEncoder(stdin).Encode(c); err != nil {
		p.kill()
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("starting a server process: %w", err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// kill kills the process, so that nothing is flushed or handed over.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.stdin.Close()
}
