package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPython runs the program without installing the package, as in a checkout.
func TestPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT TESTED: python3 is not installed, so examples/python/consume.py was not run")
	}
	consume(t, "python3", "-B", filepath.Join(examples, "python", "consume.py"))
}

// TestPythonPackage installs the package with pip, without a network, and runs the example of its README.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	if os.Getenv("FRESHET_TEST_CLIENTS") == "" {
		t.Skip("NOT TESTED: FRESHET_TEST_CLIENTS is not set, so examples/python was not installed; make test sets it")
	}
	dir := t.TempDir()
	python, pip := newVenv(t, dir)
	// A copy, because building must not write to the tree.
	source := filepath.Join(dir, "python")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(examples, "python"))); err != nil {
		t.Fatal(err)
	}
	run(t.Context(), t, dir, nil, append(pip, "install", "--no-index", "--disable-pip-version-check", source)...)
	// Below another folder, so that the installed package is used.
	program := filepath.Join(dir, "program")
	if err := os.Mkdir(program, 0o700); err != nil {
		t.Fatal(err)
	}
	readme(t, "python", "python", filepath.Join(program, "readme.py"), python)
}

// newVenv creates a virtual environment and returns its interpreter and the command of pip for it. The pip of the
// system is used if there is one, because installing pip takes most of the time.
func newVenv(t *testing.T, dir string) (python string, pip []string) {
	t.Helper()
	venv := filepath.Join(dir, "venv")
	python = filepath.Join(venv, "bin", "python")
	pip = []string{python, "-m", "pip"}
	args := []string{"-m", "venv", venv}
	// The option --python is new in pip 22.3.
	if exec.CommandContext(t.Context(), "python3", "-m", "pip", "--python", "python3", "--version").Run() == nil {
		args = append(args, "--without-pip")
		pip = []string{"python3", "-m", "pip", "--python", python}
	}
	if out, err := exec.CommandContext(t.Context(), "python3", args...).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: Python or its module venv is missing, so examples/python was not installed: %v\n%s",
			err, out)
	}
	return python, pip
}
