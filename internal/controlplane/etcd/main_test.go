package etcd_test

import (
	"os"
	"testing"

	"freshet/test/parallel"
)

// TestMain runs many tests at once, because they mostly wait for elections and for members that stop.
func TestMain(m *testing.M) {
	parallel.Set(6)
	os.Exit(m.Run())
}
