package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// notRunWithJSON lists the commands with -o json that testdata/json.sh does not run, with the reason.
var notRunWithJSON = map[string]string{
	"freshet ensemble status":      "a single server has no members; test/ensemble/members runs it",
	"freshet ensemble step-down":   "a single server has no members; test/ensemble/chaos runs it",
	"freshet ensemble repair":      "it needs a lost journal; TestRepair runs it",
	"freshet ensemble rejoin":      "it needs a member with damaged data; test/ensemble/damage runs it as text",
	"freshet ensemble accept-loss": "it needs a lost log; TestEnsembleCommandsPrintJSON runs it",
	"freshet ensemble replace":     "it needs a lost member; TestEnsembleCommandsPrintJSON runs it",
	"freshet ensemble join":        "it needs a bundle; TestEnsembleCommandsPrintJSON runs it",
	"freshet migrate":              "it needs an ensemble; TestMigratePrintsJSON runs it",
}

// TestOutputIsJSON runs every command that knows -o json with it, and checks that standard output
// is JSON and nothing else.
func TestOutputIsJSON(t *testing.T) {
	t.Parallel()
	s, err := startOwn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	if err := errors.Join(populate(dir, s), os.Mkdir(filepath.Join(dir, "out"), 0o700),
		os.WriteFile(filepath.Join(dir, "empty.yaml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/json.sh")
	if err != nil {
		t.Fatal(err)
	}
	// differs expects exit code 1.
	const functions = `n=1000
json() { n=$((n + 1)); echo "$*" > out/$n.args; freshet "$@" -o json > out/$n.json; }
differs() { code=0; "$@" || code=$?; [ $code = 1 ]; }
`
	if out, err := bash(t.Context(), dir, s, functions+string(script)); err != nil {
		t.Fatalf("%v after %s\n%s", err, lastArgs(dir), out)
	}
	run := checkOutputs(t, dir)
	for _, c := range commands(t) {
		_, excepted := notRunWithJSON[c.Path]
		if knows := knowsJSON(c); knows && !run[c.Path] && !excepted {
			t.Errorf("testdata/json.sh does not run %s, which knows -o json", c.Path)
		} else if excepted && (!knows || run[c.Path]) {
			t.Errorf("%s is in notRunWithJSON without need", c.Path)
		}
	}
}

func knowsJSON(c commandDoc) bool {
	for _, f := range c.Flags {
		if f.Name == "output" && f.Value == "format" {
			return true
		}
	}
	return false
}

func lastArgs(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "out", "*.args")) // the pattern is valid
	if len(files) == 0 {
		return "no command"
	}
	text, _ := os.ReadFile(slices.Max(files)) // only for a message
	return strings.TrimSpace(string(text))
}

// checkOutputs checks every stored output, and returns the commands that were run.
func checkOutputs(t *testing.T, dir string) map[string]bool {
	t.Helper()
	run := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "out", "*.args"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.ReadFile(strings.TrimSuffix(file, ".args") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(strings.NewReader(string(out)))
		values := 0
		for err == nil {
			var value any
			if err = decoder.Decode(&value); err == nil {
				values++
			}
		}
		if !errors.Is(err, io.EOF) || values == 0 {
			t.Errorf("freshet %s -o json: %d values, %v\n%s", strings.TrimSpace(string(args)), values, err, out)
		}
		path := "freshet"
		for _, word := range strings.Fields(string(args)) {
			path += " " + word
			run[path] = true // also prefixes and arguments, which are not commands
		}
	}
	return run
}
