package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLineOnOtherSystems checks the types of the program without the server, and of everything that it
// imports, on the systems for which it is released. That takes a fraction of the time of compiling it.
func TestCommandLineOnOtherSystems(t *testing.T) {
	needRelease(t)
	for _, system := range []string{"windows/amd64", "darwin/arm64", "darwin/amd64", "linux/arm64"} {
		t.Run(system, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(system, "/")
			packages := listPackages(t, goos, goarch)
			if len(packages) < 300 {
				t.Fatalf("packages: got %d, want several hundred", len(packages))
			}
			checked := checker{types.SizesFor("gc", goarch), map[string]*types.Package{"unsafe": types.Unsafe}}
			for _, p := range packages {
				for _, err := range checked.add(p) {
					t.Errorf("%s: %v", p.ImportPath, err)
				}
			}
		})
	}
}

// goPackage is what go list prints of a package.
type goPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
}

// listPackages lists the packages of the program without the server, each after those that it imports.
func listPackages(t *testing.T, goos, goarch string) (list []goPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=cli",
		"-json=ImportPath,Dir,GoFiles,ImportMap", "./cmd/freshet")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// checker has the packages whose types are checked already.
type checker struct {
	sizes types.Sizes
	done  map[string]*types.Package
}

func (c checker) add(p goPackage) (problems []error) {
	if p.ImportPath == "unsafe" {
		return nil
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		files = append(files, file)
	}
	config := types.Config{Sizes: c.sizes, Importer: importer{c.done, p.ImportMap}, Error: func(err error) {
		problems = append(problems, err)
	}}
	// The error is the first of problems.
	c.done[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil)
	return problems
}

// importer finds the imports of one package.
type importer struct {
	done  map[string]*types.Package
	paths map[string]string // of packages that the standard library has copies of
}

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if vendored, ok := i.paths[path]; ok {
		path = vendored
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s is not in the list", path)
}
