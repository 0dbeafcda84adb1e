package clients

import (
	"os"
	"testing"

	"freshet/test/parallel"
)

// TestMain runs several tests at once, because they wait for programs that are installed and for groups of consumers.
func TestMain(m *testing.M) {
	parallel.Set(4)
	os.Exit(m.Run())
}
