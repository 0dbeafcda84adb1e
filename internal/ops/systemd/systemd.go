// Package systemd reports the state of the server to systemd: that it is ready, reloads, stops, and is
// still alive (sd_notify(3), services with Type=notify). It does not decide when the server is ready;
// package server does.
//
// A Notifier has no locks; its methods may be called concurrently, because every notification is one
// datagram.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// sendTimeout limits how long a notification waits while the queue of systemd is full.
const sendTimeout = 5 * time.Second

// maxStatus limits the length of a status line in bytes.
const maxStatus = 500

// Notifier sends notifications to systemd. Without systemd its methods do nothing.
type Notifier struct {
	conn     *net.UnixConn // nil if systemd does not wait for notifications
	watchdog time.Duration // 0 if systemd does not watch this process
	log      *slog.Logger
}

// Open returns the notifier of this process. It removes the variables NOTIFY_SOCKET, WATCHDOG_USEC and
// WATCHDOG_PID from the environment: the API server library would otherwise report READY=1 before the
// data plane runs, and child processes could report in the name of the server.
func Open(log *slog.Logger) *Notifier {
	n := &Notifier{log: log}
	socket := take("NOTIFY_SOCKET")
	interval, pid := take("WATCHDOG_USEC"), take("WATCHDOG_PID")
	if socket == "" {
		return n
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		log.Warn("opening the notification socket of systemd failed; systemd does not learn the state of the server",
			slog.Any("error", err))
		return n
	}
	n.conn = conn
	if n.watchdog, err = watchdogInterval(interval, pid); err != nil {
		log.Warn("reading the watchdog's interval from systemd failed; systemd restarts the server at its end",
			slog.Any("error", err))
	}
	return n
}

// take returns an environment variable and removes it.
func take(name string) string {
	value := os.Getenv(name)
	_ = os.Unsetenv(name) // fails only for invalid names
	return value
}

// watchdogInterval returns the time after which systemd restarts a process that has not reported that it
// is alive, or 0 if systemd watches no process or another one.
func watchdogInterval(microseconds, pid string) (time.Duration, error) {
	if microseconds == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	n, err := strconv.ParseInt(microseconds, 10, 64)
	if err != nil || n <= 0 || n > int64(24*time.Hour/time.Microsecond) {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q, want microseconds, at most a day", microseconds)
	}
	return time.Duration(n) * time.Microsecond, nil
}

// Ready reports that the start or a reload has finished.
func (n *Notifier) Ready(status string) { n.send("READY=1", statusLine(status)) }

// Reloading reports that a reload has started. Ready ends it.
func (n *Notifier) Reloading() { n.send("RELOADING=1", statusLine("reloading")) }

// Stopping reports that the server stops.
func (n *Notifier) Stopping() { n.send("STOPPING=1", statusLine("stopping")) }

// Status sets the line that `systemctl status` shows.
func (n *Notifier) Status(status string) { n.send(statusLine(status)) }

// Watch reports that the server is alive, four times per interval of the watchdog, while alive returns
// no error. It returns when ctx ends, or immediately if systemd does not watch this process. When
// alive fails or hangs for the whole interval, systemd aborts and restarts the server; the log then has
// the stacks of all goroutines.
func (n *Notifier) Watch(ctx context.Context, alive func(context.Context) error) {
	if n.conn == nil || n.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(n.watchdog / 4)
	defer ticker.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, n.watchdog)
		err := alive(probe)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			n.send("WATCHDOG=1")
		default:
			n.log.Warn("liveness check failed; systemd restarts the server if it keeps failing",
				slog.Any("error", err), slog.Duration("watchdog", n.watchdog))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Close closes the socket. Nothing is sent afterwards.
func (n *Notifier) Close() error {
	if n.conn == nil {
		return nil
	}
	return n.conn.Close()
}

func (n *Notifier) send(lines ...string) {
	if n.conn == nil {
		return
	}
	err := n.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = n.conn.Write([]byte(strings.Join(lines, "\n") + "\n"))
	}
	if err != nil {
		n.log.Warn("notifying systemd failed", slog.String("message", lines[0]), slog.Any("error", err))
	}
}

// statusLine returns STATUS=… on one line, because a line break would start another assignment.
func statusLine(status string) string {
	status = strings.Join(strings.Fields(status), " ")
	if len(status) > maxStatus {
		status = strings.ToValidUTF8(status[:maxStatus], "")
	}
	return "STATUS=" + status
}
