// Command tally reads the events of `go test -json` and prints one table of the results of the tests that
// attack the system (tally attack) or inject faults (tally fault). hack/tally.sh runs it. The arguments after the
// kind are the tests that must be among the events: PACKAGE.TEST.
//
// A test reports its results with test/tally. An attack without such a report counts its subtests, or
// itself, as attempts, and those that failed as successes. An attack that fails although it reports no success
// counts as a success too, because nothing shows that the system withstood it. The exit code is 1 if
// an attack succeeded, a test failed, or a test was not run.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1) //nolint:forbidigo // a command of its own
	}
}

func run(args []string) error {
	if len(args) == 0 || heads[args[0]] == nil {
		return errors.New("usage: go test -json … | tally attack|fault [PACKAGE.TEST]")
	}
	r := newResults(args[0])
	if err := r.read(os.Stdin); err != nil {
		return err
	}
	if !r.print(os.Stdout, args[1:]) {
		return errors.New("attack succeeded, or a test failed or was not run")
	}
	return nil
}

// heads are the columns of the tables.
var heads = map[string][]string{
	"attack": {"ATTACK", "ATTEMPTS", "SUCCESSES"},
	"fault":  {"FAULT", "INJECTED", "CHECKED", "LOST", "FOREIGN", "WRONG", "RECOVERY"},
}

// event is an event of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

// test is a test or a subtest.
type test struct {
	action string // pass, fail, skip, or "" while it runs
	sub    bool   // is a subtest
	parent bool   // has subtests
	rows   [][]string
}

// results are the tests by their names, PACKAGE.TEST.
type results struct {
	kind     string
	prefix   string
	line     *regexp.Regexp
	tests    map[string]*test
	names    []string // in the order in which they began
	packages []string // packages that failed without a test, for example to build
	notes    []string
}

func newResults(kind string) *results {
	return &results{
		kind: kind, prefix: "Test" + strings.ToUpper(kind[:1]) + kind[1:],
		line: regexp.MustCompile(`tally ` + kind + ` \| (.*)`), tests: map[string]*test{},
	}
}

func (r *results) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	failed := map[string]bool{}
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // output of the compiler
		}
		if e.Test != "" {
			failed[e.Package] = failed[e.Package] || e.Action == "fail"
			r.add(e)
		} else if e.Action == "fail" && !failed[e.Package] {
			r.packages = append(r.packages, e.Package)
		}
	}
	return lines.Err()
}

func (r *results) add(e event) {
	root, _, sub := strings.Cut(e.Test, "/")
	if !strings.HasPrefix(root, r.prefix) {
		return
	}
	name := e.Package + "." + e.Test
	one := r.tests[name]
	if one == nil {
		one = &test{sub: sub}
		r.tests[name], r.names = one, append(r.names, name)
		if parent := r.tests[e.Package+"."+path.Dir(e.Test)]; sub && parent != nil {
			parent.parent = true
		}
	}
	switch e.Action {
	case "pass", "fail", "skip":
		one.action = e.Action
	case "output":
		if match := r.line.FindStringSubmatch(e.Output); match != nil {
			row := strings.Split(match[1], "|")
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			top := r.tests[e.Package+"."+root]
			top.rows = append(top.rows, row)
		}
		if strings.Contains(e.Output, "NOT TESTED") {
			r.notes = append(r.notes, strings.TrimSpace(e.Output))
		}
	}
}

// print prints the table, and reports whether every test was run and none failed.
func (r *results) print(w io.Writer, wanted []string) bool {
	table, bad, skipped := [][]string{heads[r.kind]}, []string{}, []string{}
	for _, name := range r.names {
		one := r.tests[name]
		if one.sub {
			continue
		}
		switch one.action {
		case "skip":
			skipped = append(skipped, name)
			continue
		case "pass":
		default:
			bad = append(bad, name)
		}
		table = append(table, r.rowsOf(name, one)...)
	}
	for _, name := range wanted {
		if r.tests[name] == nil {
			bad = append(bad, name+" (not run)")
			if r.kind == "attack" {
				table = append(table, []string{name + " (not run)", "0", "0"})
			}
		}
	}
	for _, name := range r.packages {
		bad = append(bad, name+" (package)")
	}
	var b strings.Builder
	successes := printTable(&b, table)
	for _, name := range skipped {
		b.WriteString("skipped: " + name + "\n")
	}
	for _, note := range r.notes {
		b.WriteString(note + "\n")
	}
	for _, name := range bad {
		b.WriteString("FAILED: " + name + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return false
	}
	return len(bad) == 0 && len(table) > 1 && (r.kind != "attack" || successes == 0)
}

// rowsOf returns the rows of a test.
func (r *results) rowsOf(name string, one *test) [][]string {
	if r.kind != "attack" {
		return one.rows
	}
	failed := one.action != "pass"
	if len(one.rows) > 0 {
		reported := slices.ContainsFunc(one.rows, func(row []string) bool { return row[len(row)-1] != "0" })
		if failed && !reported {
			return append(one.rows, []string{short(name) + " (failed)", "1", "1"})
		}
		return one.rows
	}
	attempts, successes := 0, 0
	for _, sub := range r.names {
		if strings.HasPrefix(sub, name+"/") && !r.tests[sub].parent && r.tests[sub].action != "skip" {
			attempts++
			if r.tests[sub].action != "pass" {
				successes++
			}
		}
	}
	if attempts == 0 {
		attempts = 1
	}
	if failed && successes == 0 {
		successes = 1
	}
	return [][]string{{short(name), strconv.Itoa(attempts), strconv.Itoa(successes)}}
}

// short returns the name of a test with the last part of its package.
func short(name string) string { return path.Base(name) }

// printTable prints a table with the sums of its columns, and returns the sum of the third column.
func printTable(b *strings.Builder, table [][]string) int {
	widths, sums := make([]int, len(table[0])), make([]int, len(table[0]))
	for _, row := range table {
		for i := range min(len(row), len(widths)) {
			widths[i] = max(widths[i], len([]rune(row[i])))
			if n, err := strconv.Atoi(row[i]); err == nil && i > 0 {
				sums[i] += n
			}
		}
	}
	total := []string{"TOTAL"}
	for _, sum := range sums[1:min(len(sums), 6)] {
		total = append(total, strconv.Itoa(sum))
	}
	for _, row := range append(table, total) {
		for i := range min(len(row), len(widths)) {
			if i == 0 {
				fmt.Fprintf(b, "%-*s", widths[i], row[i])
			} else {
				fmt.Fprintf(b, "  %*s", widths[i], row[i])
			}
		}
		b.WriteByte('\n')
	}
	return sums[2]
}
