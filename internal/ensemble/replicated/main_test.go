package replicated

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs many tests in parallel, because they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
