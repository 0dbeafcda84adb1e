package goclient_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/pages"
)

const (
	clientPath    = "freshet.dev/client"
	clientVersion = "v0.1.0"
)

// maxModules is the maximum number of modules that a program with the client requires, directly or not. The server
// requires more than 150.
const maxModules = 15

// TestOutsideModule gets the client with `go get` from a module proxy into a module outside the repository, compiles
// the example of its README and all its packages there, and runs the example.
func TestOutsideModule(t *testing.T) {
	t.Parallel()
	readSources(t)
	server := start(t)
	proxy := t.TempDir()
	runGo(t, ".", nil, "run", "freshet/hack/goproxy", "-version", clientVersion, clientFolder, proxy)

	dir := t.TempDir()
	readme := string(must[[]byte](t)(os.ReadFile(filepath.Join(clientFolder, "README.md"))))
	programs := pages.Blocks(readme, "go")
	if len(programs) != 1 {
		t.Fatalf("client/README.md has %d blocks of Go, want one program", len(programs))
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(programs[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	env := outsideEnvironment(t, proxy)
	runGo(t, dir, env, "mod", "init", "outside.example")
	runGo(t, dir, env, "get", clientPath+"@"+clientVersion)
	runGo(t, dir, env, "vet", ".", clientPath+"/...")
	runGo(t, dir, env, "build", "-o", "program", ".")

	modules := strings.Fields(runGo(t, dir, env, "list", "-m", "-f", "{{.Path}}", "all"))
	if len(modules) > maxModules {
		t.Errorf("a program with the client requires %d modules, want at most %d: %q", len(modules), maxModules,
			modules)
	}
	for _, path := range modules {
		if path == "freshet" || strings.HasPrefix(path, "k8s.io/") {
			t.Errorf("the client requires %s", path)
		}
	}
	program := exec.CommandContext(t.Context(), filepath.Join(dir, "program"))
	program.Env = append(os.Environ(), environment(server)...)
	out, err := program.CombinedOutput()
	if err != nil || string(out) != "customer-7 one order\n" {
		t.Errorf("the example printed %q, %v, want %q", out, err, "customer-7 one order\n")
	}
}

// outsideEnvironment returns the variables with which go takes the client from the proxy, and other modules from the
// module cache or, if they are missing there, from the usual proxy. The client gets a module cache of its own: it has
// the same version after every change.
func outsideEnvironment(t *testing.T, proxy string) []string {
	t.Helper()
	values := strings.Split(runGo(t, ".", nil, "env", "GOMODCACHE", "GOPROXY"), "\n")
	if len(values) < 2 {
		t.Fatalf("go env printed %q", values)
	}
	proxies := []string{"file://" + proxy, "file://" + values[0] + "/cache/download", values[1]}
	return append(os.Environ(), "GOPROXY="+strings.Join(proxies, ","), "GOSUMDB=off", "GOTOOLCHAIN=local", "GOWORK=off",
		"CGO_ENABLED=0", "GOMODCACHE="+t.TempDir(), "GOFLAGS=-mod=mod -modcacherw -trimpath")
}

// runGo runs the go command and returns its output.
func runGo(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, env
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, problems.String())
	}
	return string(out)
}

// TestLicense: the module has the license of the repository.
func TestLicense(t *testing.T) {
	t.Parallel()
	ours := must[[]byte](t)(os.ReadFile("../../LICENSE"))
	if !bytes.Equal(ours, must[[]byte](t)(os.ReadFile(filepath.Join(clientFolder, "LICENSE")))) {
		t.Error("client/LICENSE differs from LICENSE; copy it")
	}
}
