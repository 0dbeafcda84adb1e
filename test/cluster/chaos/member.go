// Package chaos breaks a running system while clients use it, and checks what they
// were told: real processes on loopback, killed, paused, cut off, restarted, one by
// one and all at once, by a plan that a seed makes. It ends only processes that it
// has started itself.
//
//   - member.go: one process. group.go: three of them, with proxies between them.
//   - faults.go, leaders.go, network.go, disk.go, replace.go: what can be done to them. plan.go: which of it when.
//   - run.go: clients (package load), faults and the check (package history) together.
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

	"freshet/client"
	"freshet/test/cluster/load"
	"freshet/test/freeport"
	"freshet/test/testserver"
)

// Member is a server that is started again and again on the same data directory
// and the same addresses. Its lock guards the running process.
type Member struct {
	load.Member
	binary, dir string
	options     testserver.Options

	pid    atomic.Int64 // 0 while there is no process; known before it is ready
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
	m.options.Launched = func(pid int) { m.pid.Store(int64(pid)) }
	if o.Stream {
		m.Stream = ports[3]
	}
	return m, nil
}

// Ops is where the member's metrics and profiles are.
func (m *Member) Ops() string { return "http://" + m.options.Addresses[2] }

// Start starts the process and waits until it is ready. One that runs is left alone.
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

// Running says whether the process is there, paused or not.
func (m *Member) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runningLocked()
}

// Paused says whether the process is stopped from running. It waits for nobody.
func (m *Member) Paused() bool { return m.paused.Load() && m.PID() > 0 }

// Kill ends the process as a crash does.
func (m *Member) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		m.server.Kill()
	}
	m.paused.Store(false)
	m.pid.Store(0)
}

// Stop asks the process to end and waits until it has.
func (m *Member) Stop(timeout time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.runningLocked() {
		return nil
	}
	if m.paused.Load() {
		return errors.New("a paused process cannot be stopped")
	}
	err := m.server.Stop(timeout)
	m.pid.Store(0)
	return err
}

// Pause stops the process from running without ending it; Resume has it go on.
func (m *Member) Pause() error { return m.signal(syscall.SIGSTOP, true) }

// Resume has a paused process go on.
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

// ready says whether the member says that it is ready, within a time.
func (m *Member) ready(ctx context.Context, timeout time.Duration) bool {
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

// serves waits until the member answers for the default cluster.
func (m *Member) serves(ctx context.Context) error {
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

// PID is the process's id, 0 when it does not run. It waits for nobody, since the links
// between members ask for it while a member starts.
func (m *Member) PID() int { return int(m.pid.Load()) }

// Log is the end of what the process wrote.
func (m *Member) Log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return ""
	}
	return m.server.Log()
}

// LogFile is where everything that the process wrote is.
func (m *Member) LogFile() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return ""
	}
	return m.server.LogFile()
}

// Token is the administrator's, as the member's data directory has it.
func (m *Member) Token() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server.Token
}
