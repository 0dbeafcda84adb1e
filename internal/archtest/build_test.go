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
	runScript := func(cpus string) string {
		cmd := exec.CommandContext(t.Context(), script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "FRESHET_CPUS="+cpus)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	// The time is the measured CPU time, divided by the CPUs.
	for cpus, want := range map[string]string{
		"1": "takes about 13 minutes with 1 CPUs", "2": "takes about 6 minutes", "8": "takes about 2 minutes",
	} {
		if got := runScript(cpus); !strings.Contains(got, want) {
			t.Errorf("before the first build with %s CPUs: got %q, want %q", cpus, got, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "freshet"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runScript("2"); got != "" {
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
