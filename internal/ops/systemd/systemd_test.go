package systemd_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/internal/ops/systemd"
)

// manager is systemd's side of the socket.
type manager struct{ conn *net.UnixConn }

// listen creates a notification socket and sets the variables of the process.
func listen(t *testing.T, variables map[string]string) manager {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	for name, value := range variables {
		t.Setenv(name, value)
	}
	return manager{conn}
}

func (m manager) next(t *testing.T) string {
	t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func open(t *testing.T) *systemd.Notifier {
	t.Helper()
	n := systemd.Open(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestNotifications(t *testing.T) {
	m := listen(t, nil)
	n := open(t)
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if value, set := os.LookupEnv(name); set {
			t.Errorf("%s=%q is still in the environment", name, value)
		}
	}
	for name, tc := range map[string]struct {
		send func()
		want string
	}{
		"status":            {func() { n.Status("starting: etcd") }, "STATUS=starting: etcd\n"},
		"ready":             {func() { n.Ready("ready") }, "READY=1\nSTATUS=ready\n"},
		"reloading":         {n.Reloading, "RELOADING=1\nSTATUS=reloading\n"},
		"stopping":          {n.Stopping, "STOPPING=1\nSTATUS=stopping\n"},
		"no added messages": {func() { n.Status("a\nREADY=1") }, "STATUS=a READY=1\n"},
		"long": {
			func() { n.Status(strings.Repeat("é", 300)) },
			"STATUS=" + strings.Repeat("é", 250) + "\n",
		},
	} {
		tc.send()
		if got := m.next(t); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestWatchdog checks that the server reports that it is alive only while the check succeeds.
func TestWatchdog(t *testing.T) {
	m := listen(t, map[string]string{"WATCHDOG_USEC": "4000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())})
	n := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended, failures := make(chan struct{}), make(chan struct{}, 1)
	checks := 0
	go func() {
		defer close(ended)
		n.Watch(ctx, func(context.Context) error {
			checks++
			if checks == 1 || checks == 4 {
				return nil
			}
			if checks > 4 {
				failures <- struct{}{}
				<-ctx.Done() // a check that hangs
			}
			n.Status("check " + strconv.Itoa(checks))
			return errors.New("the server does not answer")
		})
	}()
	for _, want := range []string{"WATCHDOG=1\n", "STATUS=check 2\n", "STATUS=check 3\n", "WATCHDOG=1\n"} {
		if got := m.next(t); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	<-failures
	cancel()
	<-ended
}

// TestWithoutWatchdog checks that Watch returns if systemd watches no process, or another one.
func TestWithoutWatchdog(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"none":      nil,
		"other pid": {"WATCHDOG_USEC": "4000", "WATCHDOG_PID": "1"},
		"no number": {"WATCHDOG_USEC": "soon"},
		"negative":  {"WATCHDOG_USEC": "-1"},
		"overflow":  {"WATCHDOG_USEC": "9223372036854775807"},
	} {
		t.Run(name, func(t *testing.T) {
			listen(t, variables)
			open(t).Watch(t.Context(), func(context.Context) error {
				t.Error("the check was called")
				return nil
			})
		})
	}
}

// TestWithoutSystemd checks that all methods do nothing without a socket, and with a wrong one.
func TestWithoutSystemd(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "missing")} {
		t.Setenv("NOTIFY_SOCKET", socket)
		n := systemd.Open(slog.New(slog.DiscardHandler))
		n.Ready("ready")
		n.Watch(t.Context(), func(context.Context) error { return nil })
		n.Stopping()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
