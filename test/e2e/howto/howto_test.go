// Package howto runs the commands of the pages in docs/howto as they stand
// there, against the real binary. (The page on API keys is run by e2e/identity,
// which also looks for the secrets that it makes.)
package howto_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/pages"
	"freshet/test/testserver"
)

func TestPages(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(t.Context(), binary, folder, testserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	for page, wants := range map[string][]string{
		"messages.md": {
			`{"order": 1}`,
			"201\n201\n",
			"customer-7\tfirst\t0\ncustomer-7\tsecond\t0\n",
			"X-Msg-Duplicate: true",
			"\n5\n", // everything that was produced; what was sent twice counts once
			`{"msgBacklog":3,"msgDelayed":1,"unackedMessages":0}`,
			`"partitions_count":4`,
		},
		"leases.md": {
			"204\n",
			"a job that fails\n",
			`{"reason":"`,
		},
		"clusters.md": {
			"registry\thttp://prod.acme.freshet.localhost:", "/clusters/acme/prod/stream\n",
			"one order\n",
			`{"id":1}`,
			`["orders-value"]`,
		},
		"backup.md": {
			"Z\n", // the folder of a backup
			"with keys\n", "without keys\n",
			"the backup is good: ",
			"restored to ",
			"\ndefault\n",
		},
		"schemas.md": {
			`{"id":1}`,
			`"is_compatible": false`,
			"READER_FIELD_MISSING_DEFAULT_VALUE",
			`{"is_compatible":true}`,
			`{"id":2}`,
			`["orders-value"]`,
			"[1,2]",
		},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			out := run(t, binary, server, page)
			run(t, binary, server, page) // a page can be followed again
			for _, want := range wants {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in the output", want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func run(t *testing.T, binary string, server *testserver.Server, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs/howto", page))
	if err != nil {
		t.Fatal(err)
	}
	script := pages.Commands(string(text))
	if strings.Count(script, "\n") < 15 {
		t.Fatalf("the page has hardly any commands:\n%s", script)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = t.TempDir()
	if err := os.Symlink(binary, filepath.Join(cmd.Dir, "freshet")); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "FRESHET_URL="+server.URL, "FRESHET_DATA="+server.DataDir, "PATH="+cmd.Dir+":"+os.Getenv("PATH"),
		"FRESHET_BACKUPS="+filepath.Join(cmd.Dir, "backups"), "FRESHET_DRILL_PORT="+freePort(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// freePort is one that nobody uses now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // only its address was wanted
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
