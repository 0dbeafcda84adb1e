package release

import (
	"os"
	"testing"
)

// needRelease skips a test that make test-release runs.
func needRelease(t *testing.T) {
	t.Helper()
	if os.Getenv("FRESHET_TEST_RELEASE") == "" {
		t.Skip("NOT TESTED: the files of a release; make test-release runs it")
	}
}
