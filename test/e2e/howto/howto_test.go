// Package howto runs the commands in the README and in docs/howto unchanged against the
// real binary. (Package e2e/identity runs the page about API keys, and also checks where the
// secrets of that page are stored.)
package howto_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/freeport"
	"freshet/test/pages"
	"freshet/test/testserver"
)

func TestPages(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "jq")
	server, binary := start(t)
	for page, wants := range map[string][]string{
		"messages.md": {
			`{"order": 1}`,
			"201\n201\n",
			"customer-7\tfirst\t0\ncustomer-7\tsecond\t0\n",
			"X-Msg-Duplicate: true",
			"\n5\n", // all messages; the duplicate counts once
			`{"msgBacklog":3,"msgDelayed":1,"unackedMessages":0}`,
			`"partitions_count":4`,
			`{"key":"AP8=","keyEncoding":"base64","headers":[["trace","AQI="],["trace",null]]}`,
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
			"Z\n", // the name of a backup's folder
			"with keys\n", "without keys\n",
			"backup is valid: ",
			"restored to ",
			"\ndefault\n",
		},
		"roles.md": {
			"role.cloud.vendor.io/shop ",
			"rolebinding.cloud.vendor.io/shop ",
			"Produces to topics and registers schemas.",
			"Events:",
			`"records":`,
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
			server, binary := server, binary
			if page == "roles.md" {
				kubectl(t)
				server, binary = start(t) // other pages create the same organization
			}
			out := run(t, binary, server, page)
			run(t, binary, server, page) // a page can be repeated
			for _, want := range wants {
				if !strings.Contains(out, want) {
					t.Errorf("output does not contain %q", want)
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
		t.Fatalf("page has fewer than 15 commands:\n%s", script)
	}
	folder := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(folder, "freshet")); err != nil {
		t.Fatal(err)
	}
	return shell(t, script, folder, "FRESHET_SERVER="+server.URL, "FRESHET_DATA="+server.DataDir,
		"FRESHET_DATA_DIR="+server.DataDir,
		"FRESHET_BACKUPS="+filepath.Join(folder, "backups"), "FRESHET_DRILL_PORT="+freePort(t))
}

// shell runs commands in a folder until one fails.
func shell(t *testing.T, script, folder string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	path := folder + ":" + os.Getenv("PATH")
	if binary := os.Getenv("KUBECTL"); binary != "" {
		path = filepath.Dir(binary) + ":" + path
	}
	cmd.Env = append(cmd.Env, "PATH="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// freePort returns a free port.
func freePort(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
}

// kubectl skips the test unless KUBECTL is set or kubectl is installed.
func kubectl(t *testing.T) {
	t.Helper()
	if os.Getenv("KUBECTL") == "" {
		need(t, "kubectl")
	}
}

// start runs a server until the end of the test.
func start(t *testing.T) (*testserver.Server, string) {
	t.Helper()
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
	return server, binary
}

// TestReadme runs the commands of the README and of the page about curl, twice.
func TestReadme(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	kubectl(t)
	server, binary := start(t)
	const address = "http://127.0.0.1:8080"
	script := commands(t, "../../../README.md", "../../../docs/howto/http-apis.md")
	if strings.Count(script, "\n") < 20 || !strings.Contains(script, address) {
		t.Fatalf("pages have fewer than 20 commands or do not contain the address %s:\n%s", address, script)
	}
	script = strings.ReplaceAll(script, address, server.URL)
	folder := t.TempDir()
	if err := errors.Join(os.Symlink(server.DataDir, filepath.Join(folder, "freshet-data")),
		os.Symlink(binary, filepath.Join(folder, "freshet"))); err != nil {
		t.Fatal(err)
	}
	for _, curl := range []string{
		"curl() { command curl --fail-with-body -sS \"$@\"; echo; }\n", // a rejected request ends the script
		"", // in the second run the subscription exists already
	} {
		out := shell(t, curl+script, folder, "HOME="+folder)
		for _, want := range []string{
			"hello, stream", "hello, schema", `"schema":`,
			"messagingcluster.cloud.vendor.io/orders condition met", "/clusters/default/orders",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("output does not contain %q\n%s", want, out)
			}
		}
	}
}

// commands returns the shell blocks of pages.
func commands(t *testing.T, names ...string) (script string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script += pages.Commands(string(text))
	}
	return script
}
