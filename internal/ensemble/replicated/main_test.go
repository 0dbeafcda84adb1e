package replicated

import (
	"os"
	"testing"

	"freshet/test/parallel"
)

// TestMain runs many tests in parallel, because they mostly wait.
func TestMain(m *testing.M) {
	parallel.Set(8)
	os.Exit(m.Run())
}
