package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var notName = regexp.MustCompile(`[^a-z0-9-]+`)

// TestScripts runs the scripts in this folder. In addition to testscript's commands:
//
//   - freshet and kubectl are on the PATH; the server's data is in ./freshet-data, and it
//     serves $SERVER (HTTPS; its authority is freshet-data/tls/ca.crt) and $SERVER_HTTP;
//   - $ORG is the name of an organization for the script;
//   - mode FILE 0600 checks the permissions of a file;
//   - code N COMMAND... runs a command that must exit with that code;
//   - save NAME sets a variable to the output of the last command;
//   - accept FILE sets a password with the invitation in a file, and decide PIPE
//     approve|refuse approves or refuses a device whose URL is read from a pipe, both in
//     the script's browser.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 ".",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			name := "t-" + strings.Trim(notName.ReplaceAllString(strings.ToLower(filepath.Base(e.WorkDir)), "-"), "-")
			e.Vars = append(e.Vars, environment(e.WorkDir, server)...)
			e.Vars = append(e.Vars, "ORG="+strings.TrimPrefix(name, "t-script-"))
			e.Values[browserKey{}] = newBrowser()
			return populate(e.WorkDir, server)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mode": checkMode, "code": exitsWith, "save": save, "accept": accept, "decide": decide,
		},
	})
}

func checkMode(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: mode FILE 0600")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%#o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: code N COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit interface{ ExitCode() int }
	if ok := errors.As(err, &exit); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func save(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: save NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}
