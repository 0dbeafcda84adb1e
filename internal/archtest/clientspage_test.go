package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"freshet/test/pages"
)

// TestClientsPage checks that docs/reference/clients.md has the versions of the files that pin them, and that
// it names every third-party client that these files pin.
func TestClientsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, row := range pages.Rows(string(page)) {
		name, pinned := spans(row[0]), spans(row[len(row)-2])
		if len(name) == 0 || len(pinned) == 0 {
			continue // not pinned: a program of the system
		}
		version := row[len(row)-3]
		if !pins(t, pinned[0], name[0], version) {
			t.Errorf("%s does not pin %s to %s", pinned[0], name[0], version)
		}
		checked++
	}
	if checked < 20 {
		t.Errorf("checked %d versions, want at least 20", checked)
	}
	for _, pattern := range []string{"go.mod", "*.json", "requirements.txt"} {
		files, err := filepath.Glob("../../test/clients/*/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source := strings.TrimPrefix(filepath.ToSlash(file), "../../")
			if strings.HasSuffix(source, "package-lock.json") {
				continue
			}
			if !strings.Contains(string(page), "`"+source+"`") {
				t.Errorf("page has no client of %s", source)
			}
		}
	}
}

// pins reports whether a line of a file names a package and has its version. In Maven's files the name is
// groupId:artifactId or the artifactId.
func pins(t *testing.T, file, name, version string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	words := []string{name, version}
	if strings.HasSuffix(file, "pom.xml") {
		group, artifact, found := strings.Cut(name, ":")
		if !found {
			group, artifact = "", name
		}
		words = []string{">" + group, "<artifactId>" + artifact + "</artifactId>", "<version>" + version + "</version>"}
	}
	for line := range strings.Lines(string(text)) {
		separated := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\":,[]=", r) })
		found := true
		for _, word := range words {
			inLine := slices.Contains(separated, word)
			if strings.HasSuffix(file, "pom.xml") {
				inLine = strings.Contains(line, word)
			}
			found = found && inLine
		}
		if found {
			return true
		}
	}
	return false
}
