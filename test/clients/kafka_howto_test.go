package clients_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/pages"
)

// howto returns the code blocks of a section of the page about Kafka clients, with this
// server's addresses in them, and a folder in which to run them.
func (s *kafkaServer) howto(t *testing.T, section, language string) (folder string, blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/howto/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	blocks = pages.Blocks(part, language)
	if !found || len(blocks) == 0 {
		t.Fatalf("section %q of the page has no %s blocks", section, language)
	}
	for i := range blocks {
		blocks[i] = strings.NewReplacer("127.0.0.1:9092", s.Kafka, "http://127.0.0.1:8080", s.URL).Replace(blocks[i])
	}
	folder = filepath.Join(s.folder, "howto-"+section)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.DataDir, filepath.Join(folder, "freshet-data")); err != nil {
		t.Fatal(err)
	}
	return folder, blocks
}

// runHowto runs the blocks of a section one after another, as files, and checks their
// output.
func (s *kafkaServer) runHowto(t *testing.T, section, language string, run func(folder, file string) string,
	wants ...string,
) {
	t.Helper()
	folder, blocks := s.howto(t, section, language)
	var out string
	for _, block := range blocks {
		file := filepath.Join(folder, "main."+language)
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		out += run(folder, file)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("how-to, %s: output does not contain %q\n%s", section, want, out)
		}
	}
}
