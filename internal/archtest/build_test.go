package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstBuildAnnouncesItself checks that hack/first-build.sh announces a long build when no
// binary exists yet, and prints nothing otherwise.
func TestFirstBuildAnnouncesItself(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../hack/first-build.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // it has no Go module, so the script could not build anything
	runScript := func() string {
		cmd := exec.CommandContext(t.Context(), script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if got := runScript(); !strings.Contains(got, "takes a minute or two") {
		t.Errorf("before the first build: got %q, want a note that it takes long", got)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "freshet"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runScript(); got != "" {
		t.Errorf("with a binary: got %q, want no output", got)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\t@hack/first-build.sh\n\tgo build ") {
		t.Error("make target build does not call hack/first-build.sh before go build")
	}
}
