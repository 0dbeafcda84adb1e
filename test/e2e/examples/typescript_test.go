package examples

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTypeScriptPackage installs the package with npm, without a network, and runs the example of its README with
// plain JavaScript.
func TestTypeScriptPackage(t *testing.T) {
	t.Parallel()
	dir := needNode(t)
	install(t, dir, "--offline")
	readme(t, "typescript", "ts", filepath.Join(dir, "readme.mjs"), "node")
}

// TestTypeScript compiles the sources of the package, which must give the files in dist, and a program that uses the
// installed package and its types. Then it runs the program.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	dir := needNode(t)
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json"} {
		copyFile(t, name, filepath.Join(dir, name))
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: npm cannot download TypeScript, so examples/typescript was not compiled: %v\n%s", err, out)
	}
	source := filepath.Join(dir, "freshet-client")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(examples, "typescript"))); err != nil {
		t.Fatal(err)
	}
	tsc := filepath.Join(dir, "node_modules", "typescript", "bin", "tsc")
	run(t.Context(), t, dir, nil, "node", tsc, "-p", source, "--outDir", filepath.Join(dir, "compiled"))
	want := contents(t, filepath.Join(dir, "compiled"))
	if diff := cmp.Diff(want, contents(t, filepath.Join(examples, "typescript", "dist"))); diff != "" {
		t.Errorf("dist is not what tsc makes of src; run npx tsc in examples/typescript (-want +got):\n%s", diff)
	}

	if err := os.Symlink(source, filepath.Join(dir, "node_modules", "freshet-client")); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(examples, "typescript", "consume.ts"), filepath.Join(dir, "consume.ts"))
	run(t.Context(), t, dir, nil, "node", tsc)
	consume(t, "node", filepath.Join(dir, "consume.js"))
}

// needNode returns an empty folder, or skips the test if Node.js is missing.
func needNode(t *testing.T) string {
	t.Helper()
	if os.Getenv("FRESHET_TEST_CLIENTS") == "" {
		t.Skip("NOT TESTED: FRESHET_TEST_CLIENTS is not set, so examples/typescript was not run; make test sets it")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: %s is not installed, so examples/typescript was not run", program)
		}
	}
	return t.TempDir()
}

// install installs the package in a folder.
func install(t *testing.T, dir string, options ...string) {
	t.Helper()
	// Without it npm would look for a package in the folders above.
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs(filepath.Join(examples, "typescript"))
	if err != nil {
		t.Fatal(err)
	}
	run(t.Context(), t, dir, nil, append([]string{"npm", "install", "--no-audit", "--no-fund", source}, options...)...)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents returns the texts of the files of a folder by their names.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, entry := range entries {
		text, err := fs.ReadFile(os.DirFS(folder), entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[entry.Name()] = string(text)
	}
	return texts
}
