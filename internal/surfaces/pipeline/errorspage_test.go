package pipeline

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"freshet/test/pages"
)

// TestErrorPage checks that docs/reference/errors.md lists every status with its reason.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := pages.Section(string(page), "## Resource API, system API, audit log")
	listed := map[int]string{}
	for _, row := range pages.Rows(text) {
		status, err := strconv.Atoi(strings.Trim(row[0], "`"))
		if err != nil || len(row) != 4 {
			t.Errorf("row %q: want a code, reasons, its meaning and what to do", row)
		}
		listed[status] = row[1]
	}
	for _, status := range statuses {
		if reason, ok := listed[status]; !ok || !strings.Contains(reason, reasons[status]) {
			t.Errorf("page has the reason %q for status %d, want %q", reason, status, reasons[status])
		}
	}
}
