package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefusal checks which line and which command the harness finds in the log of a member that
// refuses to start.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const old = "freshet: member/wal/0.wal is damaged; run freshet ensemble replace\n"
	tests := map[string]struct {
		log, command string
		names        bool
	}{
		"nothing":    {log: "level=INFO msg=request\n"},
		"no command": {log: "freshet: member/wal/0.wal is damaged; restore a backup\n"},
		"rejoin": {
			log:     "level=INFO\nfreshet: wal/0.wal: run: freshet ensemble rejoin --config FILE, and start\n",
			command: "freshet ensemble rejoin", names: true,
		},
		"replace": {
			log:     "freshet: etcd is damaged; run freshet ensemble replace\n",
			command: "freshet ensemble replace", names: true,
		},
		"no file": {
			log:     "freshet: something is damaged; run freshet ensemble replace b\n",
			command: "freshet ensemble replace",
		},
		"only the bundle": {
			log:     "freshet: etcd: run freshet ensemble replace b --only-bundle\n",
			command: "freshet ensemble replace b --only-bundle", names: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(old+tc.log), 0o600); err != nil {
				t.Fatal(err)
			}
			line, command := refusal(path, int64(len(old)))
			if command != tc.command || tc.command == "" && line != "" {
				t.Errorf("got %q in %q, want %q", command, line, tc.command)
			}
			if got := namesFile(line, "etcd/member/wal/0.wal"); got != tc.names {
				t.Errorf("%q names the file: got %t, want %t", line, got, tc.names)
			}
			got := complaints(path, int64(len(old)))
			if strings.Contains(got, "level=INFO") || strings.Contains(tc.log, "freshet: ") != (got != "") {
				t.Errorf("complaints: got %q of %q", got, tc.log)
			}
		})
	}
}
