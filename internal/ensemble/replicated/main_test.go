package replicated

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets many tests run at a time: most of what they do is wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
