package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var goFile = regexp.MustCompile(`\b[a-z0-9/]+\.go\b`)

// TestWalks: the files that CONTRIBUTING leads a newcomer through are there.
func TestWalks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := goFile.FindAllString(string(page), -1)
	if len(found) < 15 {
		t.Errorf("CONTRIBUTING.md names %d files, want the walks to name at least 15", len(found))
	}
	for _, name := range found {
		if missing(filepath.Join("..", name)) && missing(filepath.Join("../..", name)) {
			t.Errorf("CONTRIBUTING.md names %s, which is not there", name)
		}
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}
