package adminsocket_test

import (
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
