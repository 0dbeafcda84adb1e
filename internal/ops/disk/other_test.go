package disk_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestBuildsOnDarwin builds the package for macOS, where developers run the command line and a server.
func TestBuildsOnDarwin(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "build", ".")
	cmd.Env = append(os.Environ(), "GOOS=darwin", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
