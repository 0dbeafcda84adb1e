package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var goFile = regexp.MustCompile(`\b[a-z0-9/]+\.go\b`)

// TestContributingFilesExist checks that the files that CONTRIBUTING.md mentions exist.
func TestContributingFilesExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := goFile.FindAllString(string(page), -1)
	if len(found) < 15 {
		t.Errorf("CONTRIBUTING.md mentions %d files, want at least 15 in its walks", len(found))
	}
	for _, name := range found {
		if missing(filepath.Join("..", name)) && missing(filepath.Join("../..", name)) {
			t.Errorf("CONTRIBUTING.md mentions %s, but the file does not exist", name)
		}
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}
