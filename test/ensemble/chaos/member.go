// Package chaos injects faults into a running system while clients use it, and checks the
// responses that the clients got. It starts real processes on loopback and kills, pauses,
// isolates and restarts them, one at a time and all at once, following a plan that a seed
// determines. It only ends processes that it has started itself.
//
//   - member.go, status.go: one process. group.go: an ensemble of them, with proxies between them.
//   - faults.go, leaders.go, network.go, disk.go, replace.go: the faults. plan.go: their order and times.
//   - healing.go: damaged files (package spoil), and how a member recovers from them.
//   - run.go: clients (package load), faults and the check (package history) together.
//   - probe.go: measures how long topics have no owner.
//
// Locks: Member.mu protects the running process and its options, Ensemble.mu the random
// generator, Probe.mu the recorded times. None is taken while another is held.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"freshet.dev/client"
	"freshet/test/ensemble/load"
	"freshet/test/freeport"
	"freshet/test/testserver"
)

// Member is a server process that is restarted on the same data directory and the same
// addresses. mu protects server, options and binary.
type Member struct {
	load.Member
	dir     string
	binary  string
	options testserver.Options

	pid    atomic.Int64 // 0 while no process runs; set before it is ready
	paused atomic.Bool

	mu     sync.Mutex
	server *testserver.Server
}

// newMember returns a member that is not running, with its log in dir.
func newMember(ctx context.Context, name, binary, dir string, o testserver.Options) (*Member, error) {
	ports, err := freeport.Addresses(ctx, 5)
	if err != nil {
		return nil, err
	}
	o.Addresses = ports
	m := &Member{Member: load.Member{Name: name, URL: "http://" + ports[0]}, binary: binary, dir: dir, options: o}
	m.options.OnLaunch = func(pid int) { m.pid.Store(int64(pid)) }
	if o.Kafka {
		m.Kafka = ports[3]
	}
	return m, nil
}

// Ops returns the base URL of the member's metrics and profiles.
func (m *Member) Ops() string { return "http://" + m.options.Addresses[2] }

// DataDir returns the member's data directory.
func (m *Member) DataDir() string { return m.options.DataDir }

// Start starts the process and waits until it is ready. It does nothing if the process runs.
func (m *Member) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runningLocked() {
		return nil
	}
	server, err := testserver.Start(ctx, m.binary, m.dir, m.options)
	if err != nil {
		m.pid.Store(0)
		return fmt.Errorf("starting %s: %w", m.Name, err)
	}
	m.server, m.options.DataDir = server, server.DataDir
	m.paused.Store(false)
	return nil
}

// setBinary sets the binary that the next Start runs.
func (m *Member) setBinary(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.binary = path
}

func (m *Member) runningLocked() bool {
	if m.server == nil {
		return false
	}
	select {
	case <-m.server.Exited():
		return false
	default:
		return true
	}
}

// Running reports whether the process exists, paused or not.
func (m *Member) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runningLocked()
}

// Paused reports whether the process is suspended. It takes no lock.
func (m *Member) Paused() bool { return m.paused.Load() && m.PID() > 0 }

// Kill kills the process as a crash does.
func (m *Member) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		m.server.Kill()
	}
	m.paused.Store(false)
	m.pid.Store(0)
}

// Stop sends SIGTERM to the process and waits until it exits.
func (m *Member) Stop(timeout time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.runningLocked() {
		return nil
	}
	if m.paused.Load() {
		return errors.New("process is paused; resume it before stopping it")
	}
	err := m.server.Stop(timeout)
	m.pid.Store(0)
	return err
}

// Pause suspends the process with SIGSTOP; Resume continues it.
func (m *Member) Pause() error { return m.signal(syscall.SIGSTOP, true) }

// Resume continues a paused process.
func (m *Member) Resume() error { return m.signal(syscall.SIGCONT, false) }

func (m *Member) signal(signal syscall.Signal, paused bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.runningLocked() {
		return nil
	}
	if err := syscall.Kill(m.server.PID(), signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, m.Name, err)
	}
	m.paused.Store(paused)
	return nil
}

// awaitReady waits until /readyz of the member returns 200. It returns false after the timeout.
func (m *Member) awaitReady(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for m.Running() {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/readyz", http.NoBody)
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK {
			return true
		}
		if !pause(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return false
}

// awaitServing waits until the member serves the default cluster.
func (m *Member) awaitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := client.New(client.Config{
		BaseURL: m.URL, TokenSource: client.StaticToken(m.Token()),
		Timeout: 5 * time.Second, MaxAttempts: 1,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		_, err := c.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/admin/v2/persistent/public/default"})
		if err == nil {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("member %s does not serve messages: %w", m.Name, err)
		}
	}
}

// PID returns the process id, 0 when the process does not run. It takes no lock, because
// the links between members call it while a member starts.
func (m *Member) PID() int { return int(m.pid.Load()) }

// Log returns the end of the process's output.
func (m *Member) Log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return ""
	}
	return m.server.Log()
}

// LogFile returns the path of the process's output.
func (m *Member) LogFile() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return ""
	}
	return m.server.LogFile()
}

// Token returns the administrator's token from the member's data directory.
func (m *Member) Token() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server.Token
}
