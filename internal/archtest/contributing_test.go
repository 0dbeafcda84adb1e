package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md describes the layout, the words and three walks through the code. The tests of
// this file, of walks_test.go and of glossary_test.go compare it with the code, so that the page
// cannot become outdated.

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	// pathSpan matches paths: orders/produce.go, internal/base, client/.... An anchor may follow.
	pathSpan = regexp.MustCompile(`^\.?[A-Za-z0-9_-]+(\.[a-z]+)?(/[A-Za-z0-9_.-]+)+/?(#[a-z0-9-]+)?$`)
	fileSpan = regexp.MustCompile(`^[A-Za-z0-9_-]+\.(go|md|yaml|yml|sh|mod)$`)
	// nameSpan matches names with their package: errs.Kind, store.Kind.Validate.
	nameSpan = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)$`)
)

// contributing returns CONTRIBUTING.md without its fenced blocks.
func contributing(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(page), "")
}

// spans returns the code spans of a text.
func spans(text string) (list []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// tableRows returns the cells of the rows of all tables in a text, without the heads.
func tableRows(text string) (rows [][]string) {
	head := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			head = true
			continue
		}
		if strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| --") {
			head = false
			continue
		}
		if head {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// section returns the text below a heading, up to the next heading of the same or a higher level.
func section(t *testing.T, page, title string) string {
	t.Helper()
	level := strings.Repeat("#", strings.Count(strings.SplitN(title, " ", 2)[0], "#"))
	_, text, found := strings.Cut("\n"+page, "\n"+title+"\n")
	if !found {
		t.Fatalf("CONTRIBUTING.md has no section %q", title)
	}
	end := regexp.MustCompile(`(?m)^#{1,` + string('0'+rune(len(level))) + `} `).FindStringIndex(text)
	if end != nil {
		text = text[:end[0]]
	}
	return text
}

// resolvePath returns the path of a file or folder from the root of the repository. The page may
// leave out internal/.
func resolvePath(name string) (string, bool) {
	name, _, _ = strings.Cut(strings.TrimSuffix(name, "/..."), "#")
	for _, candidate := range []string{name, path.Join("internal", name)} {
		if _, err := os.Stat(filepath.Join("../..", candidate)); err == nil {
			return candidate, true
		}
	}
	return "", false
}

// declarations returns the names that the packages of the module declare, by the name of the package:
// Func, Type, Type.Method, Type.Field. Packages with the same name share an entry.
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, p := range handWritten(t) {
		for _, s := range sources(t, p, false) {
			names := all[s.file.Name.Name]
			if names == nil {
				names = map[string]bool{}
				all[s.file.Name.Name] = names
			}
			for _, d := range declaredNames(s.file) {
				names[d.name] = true
			}
		}
	}
	return all
}

// declaration is a declared name. The name of a method or field contains its type.
type declaration struct {
	name        string
	ident       *ast.Ident
	isInterface bool // a method of an interface
}

// declaredNames returns the package-level names of a file, with methods and fields of types.
func declaredNames(file *ast.File) (list []declaration) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiverType(d.Recv.List[0].Type) + "." + name
			}
			list = append(list, declaration{name: name, ident: d.Name})
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, ident := range spec.Names {
						list = append(list, declaration{name: ident.Name, ident: ident})
					}
				case *ast.TypeSpec:
					list = append(list, declaration{name: spec.Name.Name, ident: spec.Name})
					list = append(list, members(spec.Name.Name, spec.Type)...)
				}
			}
		}
	}
	return list
}

// members returns the fields of a struct, or the methods of an interface.
func members(typeName string, expression ast.Expr) (list []declaration) {
	var fields *ast.FieldList
	isInterface := false
	switch x := expression.(type) {
	case *ast.StructType:
		fields = x.Fields
	case *ast.InterfaceType:
		fields, isInterface = x.Methods, true
	default:
		return nil
	}
	for _, field := range fields.List {
		for _, ident := range field.Names {
			list = append(list, declaration{typeName + "." + ident.Name, ident, isInterface})
		}
	}
	return list
}

// receiverType returns the name of a receiver's type, without pointer and type parameters.
func receiverType(expression ast.Expr) string {
	switch x := expression.(type) {
	case *ast.StarExpr:
		return receiverType(x.X)
	case *ast.IndexExpr:
		return receiverType(x.X)
	case *ast.IndexListExpr:
		return receiverType(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// TestContributingPaths checks that every file and folder that CONTRIBUTING.md names exists.
func TestContributingPaths(t *testing.T) {
	t.Parallel()
	all := packages(t)
	checked := 0
	for _, span := range spans(contributing(t)) {
		if !pathSpan.MatchString(span) && !fileSpan.MatchString(span) {
			continue
		}
		checked++
		if p := all[span]; p != nil && p.Standard {
			continue // a package of the standard library
		}
		if _, exists := resolvePath(span); !exists {
			t.Errorf("CONTRIBUTING.md names %s, which does not exist", span)
		}
	}
	if checked < 50 {
		t.Errorf("CONTRIBUTING.md names %d paths, want at least 50; check the pattern", checked)
	}
}

// TestContributingNames checks that every function, method and type that CONTRIBUTING.md names with its
// package exists. TestWalks checks the names in the walks, which have a file instead.
func TestContributingNames(t *testing.T) {
	t.Parallel()
	standard := map[string]bool{}
	for _, p := range packages(t) {
		if p.Standard {
			standard[path.Base(p.ImportPath)] = true
		}
	}
	declarations := declarations(t)
	page := contributing(t)
	for _, span := range spans(strings.Replace(page, section(t, page, "## Three walks"), "", 1)) {
		m := nameSpan.FindStringSubmatch(span)
		if m == nil || fileSpan.MatchString(span) {
			continue
		}
		names, ours := declarations[m[1]]
		switch {
		case ours && !names[m[2]]:
			t.Errorf("CONTRIBUTING.md names %s, but package %s does not declare it", span, m[1])
		case !ours && !standard[m[1]]:
			t.Errorf("CONTRIBUTING.md names %s, but there is no package %s", span, m[1])
		}
	}
}

var (
	makeCall   = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// TestContributingTargets checks that every make target that CONTRIBUTING.md names exists.
func TestContributingTargets(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../CONTRIBUTING.md") // with the fenced blocks
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	var commands []string
	for _, text := range append(spans(string(page)), fence.FindAllString(string(page), -1)...) {
		for _, m := range makeCall.FindAllStringSubmatch(text, -1) {
			commands = append(commands, m[1])
		}
	}
	if len(commands) < 5 {
		t.Errorf("CONTRIBUTING.md names %d make targets, want at least 5; check the pattern", len(commands))
	}
	for _, target := range commands {
		if !targets[target] {
			t.Errorf("CONTRIBUTING.md names make %s, but the Makefile has no such target", target)
		}
	}
}

// TestContributingLayout checks that CONTRIBUTING.md describes every folder at the root, and every folder
// of internal/ with its sub-folders, in a row of a table.
func TestContributingLayout(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for _, row := range tableRows(section(t, contributing(t), "## Layout")) {
		if len(row) != 2 || len(row[1]) < 10 {
			t.Errorf("row %q: want a folder and a description", row)
			continue
		}
		for _, span := range spans(row[0]) {
			if resolved, exists := resolvePath(span); exists {
				described[resolved] = true
			}
		}
	}
	for _, folder := range foldersToDescribe(t) {
		if !described[folder] {
			t.Errorf("CONTRIBUTING.md does not describe %s; add a row to a table of its layout", folder)
		}
	}
}

// foldersToDescribe returns the folders at the root, those of internal/, and the packages one level below
// those.
func foldersToDescribe(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" && e.Name() != "freshet-data" {
			list = append(list, e.Name())
		}
	}
	for _, p := range handWritten(t) {
		parts := strings.Split(p.modulePath(), "/")
		if parts[0] != "internal" {
			continue
		}
		list = append(list, path.Join(parts[:2]...), path.Join(parts[:min(len(parts), 3)]...))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestContributingCanFail calls the parsers with texts whose result is known.
func TestContributingCanFail(t *testing.T) {
	t.Parallel()
	rows := tableRows("text\n\n| a | b |\n|---|---|\n| `x` | 1 |\n| `y` | 2 |\n\nmore\n\n| c |\n|---|\n| 3 |\n")
	if len(rows) != 3 || rows[1][0] != "`y`" || rows[2][0] != "3" {
		t.Errorf("tableRows: got %q", rows)
	}
	if got := section(t, "## A\none\n### A1\ntwo\n## B\nthree\n", "## A"); got != "one\n### A1\ntwo\n" {
		t.Errorf("section: got %q", got)
	}
	for _, name := range []string{"base/errs", "internal/base/errs", "docs/spec", "client/doc.go"} {
		if _, ok := resolvePath(name); !ok {
			t.Errorf("resolvePath(%q): got no path", name)
		}
	}
	if got, ok := resolvePath("base/nowhere"); ok {
		t.Errorf("resolvePath of a missing folder: got %q", got)
	}
	store := declarations(t)["store"]
	for _, want := range []string{"Kind", "Admitter.Admit"} {
		if !store[want] {
			t.Errorf("declarations of package store: %s is missing", want)
		}
	}
}
