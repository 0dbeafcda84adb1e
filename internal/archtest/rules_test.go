package archtest

import (
	"bufio"
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is the maximum length of a file. Files that contain only a table of data
// (…_table.go) and generated code are exempt.
const maxLines = 600

// source is one parsed hand-written file.
type source struct {
	path string
	file *ast.File
	fset *token.FileSet
}

// sources parses the hand-written files of a package, with its tests if tests is true.
func sources(t *testing.T, p *pkg, tests bool) []source {
	t.Helper()
	names := p.GoFiles
	if tests {
		names = append(append(append([]string{}, names...), p.TestGoFiles...), p.XTestGoFiles...)
	}
	var list []source
	for _, name := range names {
		path := filepath.Join(p.Dir, name)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !ast.IsGenerated(file) {
			list = append(list, source{path, file, fset})
		}
	}
	return list
}

func handWritten(t *testing.T) []*pkg {
	t.Helper()
	var list []*pkg
	for _, p := range packages(t) {
		if p.inModule() && !strings.HasPrefix(p.modulePath(), "api/generated") {
			list = append(list, p)
		}
	}
	return list
}

// TestPackageComments checks that every package has exactly one package comment and that
// it starts as go doc expects.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	for _, p := range handWritten(t) {
		files := sources(t, p, false)
		if len(files) == 0 {
			continue
		}
		var comments []string
		for _, s := range files {
			if s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != "" {
				comments = append(comments, s.file.Doc.Text())
			}
		}
		if len(comments) != 1 {
			t.Errorf("%s has %d package comments, want one", p.ImportPath, len(comments))
			continue
		}
		name := files[0].file.Name.Name
		want := "Package " + name + " "
		if name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(comments[0], want) {
			t.Errorf("%s: package comment starts with %.40q, want %q", p.ImportPath, comments[0], want)
		}
	}
}

// TestNoInit checks that no package has an init function: the composition in
// internal/server constructs every part explicitly.
func TestNoInit(t *testing.T) {
	t.Parallel()
	for _, p := range handWritten(t) {
		for _, s := range sources(t, p, false) {
			for _, decl := range s.file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s has an init function", s.fset.Position(f.Pos()))
				}
			}
		}
	}
}

// TestNames checks that no package has a name that does not describe its content.
func TestNames(t *testing.T) {
	t.Parallel()
	banned := []string{
		"util", "utils", "common", "helper", "helpers", "types", "models", "impl", "manager",
		"misc", "shared",
	}
	for _, p := range handWritten(t) {
		for _, part := range strings.Split(p.modulePath(), "/") {
			for _, word := range banned {
				if part == word {
					t.Errorf("package %s: name %q does not describe its content", p.ImportPath, word)
				}
			}
		}
	}
}

func TestFileSizes(t *testing.T) {
	t.Parallel()
	for _, p := range handWritten(t) {
		for _, s := range sources(t, p, true) {
			if strings.HasSuffix(s.path, "_table.go") || strings.HasSuffix(s.path, "_table_test.go") {
				continue
			}
			if n := s.fset.File(s.file.Pos()).LineCount(); n > maxLines {
				t.Errorf("%s has %d lines, want at most %d; split it", s.path, n, maxLines)
			}
		}
	}
}

// maxServerFiles is the maximum number of files of internal/server without its tests. The
// package only composes: what a part does belongs to the package of the part.
const maxServerFiles = 15

// TestServerComposes checks that internal/server stays small. Files for other systems count,
// too.
func TestServerComposes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../server/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if n := len(files); n == 0 || n > maxServerFiles {
		t.Errorf("internal/server has %d files, want at most %d; move what is not composition to the package that "+
			"owns it", n, maxServerFiles)
	}
}

var unfinishedMarker = regexp.MustCompile(`\b(TODO|FIXME|HACK)\b`)

// TestNoUnfinishedMarkers checks that no comment marks unfinished work; an issue does that.
func TestNoUnfinishedMarkers(t *testing.T) {
	t.Parallel()
	for _, p := range handWritten(t) {
		if p.modulePath() == "internal/archtest" {
			continue
		}
		for _, s := range sources(t, p, true) {
			for _, group := range s.file.Comments {
				if word := unfinishedMarker.FindString(group.Text()); word != "" {
					t.Errorf("%s: %s in a comment", s.fset.Position(group.Pos()), word)
				}
			}
		}
	}
}

// sleepAllowed lists the files that may call time.Sleep, with the reason.
var sleepAllowed = map[string]string{
	"internal/storage/enginetest/enginetest.go":   "leases expire on the engine's own clock",
	"internal/storage/pebble/logged_test.go":      "simulates a slow log",
	"internal/storage/pebble/crash_test.go":       "widens the race window in which a reader could see too much",
	"internal/storage/pebble/bench_test.go":       "simulates a slow disk",
	"test/ensemble/simulation/check.go":           "simulated time",
	"test/ensemble/simulation/clients.go":         "simulated time",
	"test/ensemble/simulation/coordinators.go":    "simulated time",
	"test/ensemble/simulation/faults.go":          "simulated time",
	"test/ensemble/simulation/journals.go":        "simulated time",
	"test/ensemble/simulation/member.go":          "simulated time",
	"test/ensemble/simulation/network.go":         "simulated time",
	"test/ensemble/simulation/plan.go":            "simulated time",
	"test/ensemble/simulation/natssim/conn.go":    "simulated time",
	"test/ensemble/simulation/natssim/servers.go": "simulated time",
}

// TestNoSleep checks that tests wait for a signal and do not sleep. Files that use
// testing/synctest may sleep, because that advances the fake clock.
func TestNoSleep(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	slept := map[string]bool{}
	for _, p := range handWritten(t) {
		for _, s := range sources(t, p, true) {
			name, err := filepath.Rel(root, s.path)
			if err != nil {
				t.Fatal(err)
			}
			name = filepath.ToSlash(name)
			for _, position := range sleepCalls(s) {
				slept[name] = true
				if sleepAllowed[name] == "" && !imports(s.file, "testing/synctest") {
					t.Errorf("%s calls time.Sleep: wait for a signal, use testing/synctest, or add the file to "+
						"sleepers with a reason", position)
				}
			}
		}
	}
	for name := range sleepAllowed {
		if !slept[name] {
			t.Errorf("%s is in sleepers but does not call time.Sleep; remove it from the list", name)
		}
	}
}

// sleepCalls returns the positions at which a file calls time.Sleep.
func sleepCalls(s source) (found []token.Position) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "Sleep" {
			if x, ok := call.X.(*ast.Ident); ok && x.Name == "time" {
				found = append(found, s.fset.Position(call.Pos()))
			}
		}
		return true
	})
	return found
}

func imports(file *ast.File, path string) bool {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}

// TestModuleFile checks that go.mod replaces no module, so that everybody can fetch the
// same dependencies. The client is in this repository.
func TestModuleFile(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // read only
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 0 && fields[0] == "replace" &&
			lines.Text() != "replace "+clientModule+" => ./client" {
			t.Errorf("go.mod replaces a module: %s", lines.Text())
		}
	}
}

// machinePath matches paths and hosts that exist on one machine only. The pattern is
// concatenated so that it does not match this file.
var machinePath = regexp.MustCompile("(^|[^A-Za-z0-9_.-])/(" + "work|root|home" + ")/[a-z.]|" +
	"registry" + `\.npmjs|proxy` + `\.golang|goproxy` + `\.|artifact` + `ory`)

// TestNoMachinePaths checks that no file depends on paths or hosts of one machine.
func TestNoMachinePaths(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if bytes.IndexByte(text[:min(len(text), 8_000)], 0) >= 0 {
			continue // not text
		}
		if at := machinePath.FindIndex(text); at != nil {
			t.Errorf("%s:%d names %q", name, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]])
		}
	}
}
