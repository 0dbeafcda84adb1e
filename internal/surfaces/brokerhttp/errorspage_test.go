package brokerhttp

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"freshet/test/pages"
)

// TestErrorPage checks that docs/reference/errors.md lists every status of the table.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := pages.Section(string(page), "## Message API")
	listed := map[int]bool{}
	for _, row := range pages.Rows(text) {
		status, err := strconv.Atoi(strings.Trim(row[0], "`"))
		if err != nil || len(row) != 4 {
			t.Errorf("row %q: want a status, two meanings and what to do", row)
		}
		listed[status] = true
	}
	want := map[int]bool{406: true, 415: true} // media types and content codings, without a row in the table
	for _, row := range slices.AppendSeq(slices.Clone(statusRows), maps.Values(kinds)) {
		want[row.message], want[row.admin] = true, true
	}
	if !maps.Equal(listed, want) {
		t.Errorf("page has the statuses %v, want %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(want)))
	}
}
