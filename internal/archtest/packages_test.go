package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The modules whose packages obey the rules. The client is a module of its own in the folder client.
const (
	module       = "freshet"
	clientModule = "freshet.dev/client"
)

// pkg is the description of a package that `go list -json` prints.
type pkg struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	Deps         []string
	Standard     bool
	Error        *struct{ Err string }
}

func (p *pkg) inModule() bool {
	return matches(module+"/...", p.ImportPath) || p.inClient()
}

func (p *pkg) inClient() bool { return matches(clientModule+"/...", p.ImportPath) }

// modulePath returns the import path without the module. For a package of the client it is the folder.
func (p *pkg) modulePath() string {
	if p.inClient() {
		return "client" + strings.TrimPrefix(p.ImportPath, clientModule)
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// load lists the packages of both modules and all their dependencies. It runs go list once.
var load = sync.OnceValues(func() (map[string]*pkg, error) {
	if err := readFolders("../.."); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-e", "-deps",
		"-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps,Standard,Error",
		"./...", clientModule+"/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	return decode(strings.NewReader(string(out)))
})

// readFolders reads every folder with Go code. The test cache records only the files that
// the test process itself opens, not those that `go list` reads, and would otherwise
// return an outdated result.
func readFolders(root string) error {
	for _, top := range []string{"api", "bench", "client", "cmd", "console", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func decode(r io.Reader) (map[string]*pkg, error) {
	packages := map[string]*pkg{}
	for decoder := json.NewDecoder(r); ; {
		p := &pkg{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
}

func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
