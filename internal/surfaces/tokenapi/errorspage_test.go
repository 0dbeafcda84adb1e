package tokenapi

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"freshet/test/pages"
)

// oauthCodes matches the error codes in the sources of this surface and of the sign-in pages.
var oauthCodes = regexp.MustCompile(`code: "([a-z_]+)"|grantError\("([a-z_]+)"|return "([a-z_]+)", "|` +
	`"error": +\{"([a-z_]+)"\}`)

// TestErrorPage checks that docs/reference/errors.md lists exactly the OAuth error codes of the sources.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := pages.Section(string(page), "## Tokens and sign-in")
	listed, want := map[string]bool{}, map[string]bool{}
	for _, row := range pages.Rows(text) {
		if len(row) != 4 {
			t.Errorf("row %q: want code, status, meaning and what to do", row)
		}
		listed[strings.Trim(row[0], "`")] = true
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(sources, "../signinapi/authorize.go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range oauthCodes.FindAllStringSubmatch(string(source), -1) {
			want[strings.Join(m[1:], "")] = true
		}
	}
	if !maps.Equal(listed, want) {
		t.Errorf("page has the codes %q, want %q", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(want)))
	}
}
