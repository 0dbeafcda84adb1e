package registryapi

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"freshet/test/pages"
)

// TestErrorPage checks that docs/reference/errors.md lists exactly the codes of this surface.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := pages.Section(string(page), "## Schema registry")
	listed := map[int]bool{}
	for _, row := range pages.Rows(text) {
		number, err := strconv.Atoi(strings.Trim(row[0], "`"))
		if err != nil || listed[number] || len(row) != 3 {
			t.Errorf("row %q: want a code that no other row has, its meaning and what to do", row)
		}
		listed[number] = true
	}
	want := map[int]bool{codeStore: true, codeTimeout: true, codeQuota: true, codeThrottled: true}
	for _, c := range codes {
		want[c.number] = true
	}
	for _, number := range kinds {
		want[number] = true
	}
	if !maps.Equal(listed, want) {
		t.Errorf("page has the codes %v, want %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(want)))
	}
}
