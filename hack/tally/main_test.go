package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestResults checks the table and the result for the events of tests.
func TestResults(t *testing.T) {
	t.Parallel()
	pass, fail := event{Action: "pass"}, event{Action: "fail"}
	of := func(name string, events ...event) (list []event) {
		list = append(list, event{Action: "run", Package: "p/x", Test: name})
		for _, e := range events {
			e.Package, e.Test = "p/x", name
			list = append(list, e)
		}
		return list
	}
	output := func(text string) event { return event{Action: "output", Output: text + "\n"} }
	join := func(parts ...[]event) (all []event) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, c := range map[string]struct {
		events []event
		wanted []string
		ok     bool
		rows   []string
	}{
		"reported": {
			of("TestAttackA", output("    a_test.go:1: tally attack | guessing | 20 | 0"), pass), nil, true,
			[]string{"guessing 20 0", "TOTAL 20 0"},
		},
		"a reported success": {
			of("TestAttackA", output("a: tally attack | guessing | 20 | 3"), fail), nil, false,
			[]string{"guessing 20 3"},
		},
		"failed without a reported success": {
			of("TestAttackA", output("a: tally attack | guessing | 20 | 0"), fail), nil, false,
			[]string{"guessing 20 0", "x.TestAttackA (failed) 1 1", "TOTAL 21 1"},
		},
		"failed without a report": {of("TestAttackA", fail), nil, false, []string{"x.TestAttackA 1 1"}},
		"stopped by a timeout":    {of("TestAttackA"), nil, false, []string{"x.TestAttackA 1 1"}},
		"subtests": {
			join(of("TestAttackA"), of("TestAttackA/one", pass), of("TestAttackA/two"), of("TestAttackA/two/b.c", fail),
				of("TestAttackA/two", fail), of("TestAttackA", fail)), nil, false, []string{"x.TestAttackA 2 1"},
		},
		"not run": {
			of("TestAttackA", pass),
			[]string{"p/x.TestAttackA", "p/y.TestAttackB"},
			false,
			[]string{"p/y.TestAttackB (not run) 0 0"},
		},
		"package that does not build": {
			append(of("TestAttackA", pass), event{Action: "fail", Package: "p/y"}), nil, false,
			[]string{"FAILED: p/y (package)"},
		},
		"skipped": {
			join(of("TestAttackA", pass), of("TestAttackB", event{Action: "skip"})),
			[]string{"p/x.TestAttackB"},
			true,
			[]string{"skipped: p/x.TestAttackB"},
		},
		"no attack": {of("TestOther", pass), nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in, out bytes.Buffer
			for _, e := range c.events {
				if err := json.NewEncoder(&in).Encode(e); err != nil {
					t.Fatal(err)
				}
			}
			r := newResults("attack")
			if err := r.read(&in); err != nil {
				t.Fatal(err)
			}
			ok := r.print(&out, c.wanted)
			text := regexp.MustCompile(` +`).ReplaceAllString(out.String(), " ")
			if ok != c.ok {
				t.Errorf("got %t, want %t\n%s", ok, c.ok, text)
			}
			for _, row := range c.rows {
				if !strings.Contains(text, row+"\n") {
					t.Errorf("no row %q in\n%s", row, text)
				}
			}
		})
	}
}

// TestScriptFindsAllAttacks compares the tests that hack/tally.sh runs with all in the repository.
func TestScriptFindsAllAttacks(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "./tally.sh", "attack", "--list")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	listed := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		listed[name[strings.LastIndex(name, ".")+1:]] = true
	}
	found := 0
	declaration := regexp.MustCompile(`(?m)^func (TestAttack\w*)\(`)
	files := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"*_test.go")
	files.Dir = "../.."
	names, err := files.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declaration.FindAllStringSubmatch(string(text), -1) {
			found++
			if !listed[match[1]] {
				t.Errorf("hack/tally.sh attack does not run %s in %s", match[1], name)
			}
		}
	}
	if found < 60 {
		t.Errorf("repository has %d attacks, want at least 60", found)
	}
}
