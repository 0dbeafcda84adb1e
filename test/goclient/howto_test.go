package goclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/pages"
)

// TestHowtoUsesTheExamples: every Go block of the how-to page occurs in the examples, which the tests run.
func TestHowtoUsesTheExamples(t *testing.T) {
	t.Parallel()
	var examples string
	for _, file := range []string{"example_test.go", "schemas/example_test.go"} {
		examples += unindent(string(must[[]byte](t)(os.ReadFile(filepath.Join(clientFolder, file)))))
	}
	page := string(must[[]byte](t)(os.ReadFile("../../docs/howto/go-client.md")))
	blocks := pages.Blocks(page, "go")
	if len(blocks) < 6 {
		t.Fatalf("the page has %d blocks of Go, want at least 6", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(examples, unindent(block)) {
			t.Errorf("no example contains these lines:\n%s", block)
		}
	}
}

func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
