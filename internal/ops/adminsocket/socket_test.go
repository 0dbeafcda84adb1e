package adminsocket_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/ops/adminsocket"
)

// TestConversation sends a request over the socket of a data directory, also if the path
// is too long for a socket and if an earlier socket was left behind.
func TestConversation(t *testing.T) {
	t.Parallel()
	for name, sub := range map[string]string{"short": "d", "long": strings.Repeat("long/", 40)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "control-") //nolint:usetesting // the path of t.TempDir is too long
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			data := filepath.Join(dir, sub)
			if _, err := adminsocket.Dial(t.Context(), data, adminsocket.Request{}); errs.KindOf(err) != errs.NotFound {
				t.Errorf("without a data directory: got %v, want not found", err)
			}
			if err := os.MkdirAll(filepath.Join(data, "control"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(data, "control", "socket"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := adminsocket.Dial(t.Context(), data,
				adminsocket.Request{}); errs.KindOf(err) != errs.Unavailable {
				t.Errorf("without a listener: got %v, want unavailable", err)
			}
			converse(t, data)
		})
	}
}

func converse(t *testing.T, data string) {
	t.Helper()
	listener, err := adminsocket.Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{"control": 0o700, "control/socket": 0o600} {
		if info, err := os.Stat(filepath.Join(data, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		caller := adminsocket.NewConn(conn)
		request, err := caller.Request()
		if err != nil || request.Command != adminsocket.CommandBackup {
			t.Errorf("got request %v, %v, want %s", request, err, adminsocket.CommandBackup)
		}
		if err := caller.Respond(adminsocket.Response{Staged: "there"}); err != nil {
			t.Error(err)
		}
		if err := caller.Respond(adminsocket.Response{Error: "no", Kind: errs.Conflict}); err != nil {
			t.Error(err)
		}
		caller.WaitClosed()
	}()
	server, err := adminsocket.Dial(t.Context(), data, adminsocket.Request{Command: adminsocket.CommandBackup})
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := server.Next(); err != nil || reply.Staged != "there" {
		t.Errorf("first response: got %v, %v, want Staged there", reply, err)
	}
	if _, err := server.Next(); errs.KindOf(err) != errs.Conflict || err.Error() != "no" {
		t.Errorf("second response: got %v, want the conflict", err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-hungUp
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "control", "socket")); !os.IsNotExist(err) {
		t.Errorf("socket still exists after Close: %v", err)
	}
}

// TestServe checks that Serve calls the handler of a command, sends its error, and cancels it when
// the caller disconnects or the server stops.
func TestServe(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "control-") //nolint:usetesting // the path of t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := adminsocket.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	canceled, served := make(chan struct{}, 2), make(chan struct{})
	go func() {
		defer close(served)
		adminsocket.Serve(ctx, listener, map[string]adminsocket.Handler{
			"wait": func(ctx context.Context, caller *adminsocket.Conn) error {
				if err := caller.Respond(adminsocket.Response{Progress: "waits"}); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				canceled <- struct{}{}
				return nil
			},
			"fail": func(context.Context, *adminsocket.Conn) error { return errs.New(errs.Conflict, "no") },
		}, slog.New(slog.DiscardHandler))
	}()
	for command, want := range map[string]errs.Kind{"fail": errs.Conflict, "other": errs.Invalid} {
		caller, err := adminsocket.Dial(t.Context(), dir, adminsocket.Request{Command: command})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := caller.Next(); errs.KindOf(err) != want {
			t.Errorf("%s: got error %v, want kind %v", command, err, want)
		}
		_ = caller.Close()
	}
	for _, end := range []func(*adminsocket.Conn){
		func(c *adminsocket.Conn) { _ = c.Close() },
		func(*adminsocket.Conn) { cancel() },
	} {
		caller, err := adminsocket.Dial(t.Context(), dir, adminsocket.Request{Command: "wait"})
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := caller.Next(); err != nil || reply.Progress != "waits" {
			t.Errorf("got %+v, %v; want the progress", reply, err)
		}
		end(caller)
		<-canceled
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
