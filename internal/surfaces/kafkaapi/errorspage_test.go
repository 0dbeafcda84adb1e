package kafkaapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"freshet/test/pages"
)

// TestErrorPage checks that docs/reference/errors.md lists exactly the codes of codes.go, with Kafka's name, and
// with no if clients do not repeat the call.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := pages.Section(string(page), "## Kafka protocol")
	listed := map[code]bool{}
	for _, row := range pages.Rows(text) {
		number, err := strconv.ParseInt(strings.Trim(row[0], "`"), 10, 16)
		if err != nil || len(row) != 5 {
			t.Errorf("row %q: want code, name, whether clients repeat it, meaning, what to do", row)
			continue
		}
		listed[code(number)] = true
		known := kerr.TypedErrorForCode(code(number))
		if known == nil || known.Message != row[1] || (row[2] == "yes") != known.Retriable {
			t.Errorf("row %q: Kafka has %+v", row[:3], known)
		}
	}
	if want := codesOfSource(t); !maps.Equal(listed, want) {
		t.Errorf("page has the codes %v, want %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(want)))
	}
}

// codesOfSource returns the constants of type code in codes.go, without codeOK.
func codesOfSource(t *testing.T) map[code]bool {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[code]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || types.ExprString(spec.Type) != "code" {
			return true
		}
		number, err := strconv.ParseInt(types.ExprString(spec.Values[0]), 10, 16)
		if err != nil {
			t.Errorf("%s: %v", spec.Names[0], err)
		}
		if number != int64(codeOK) {
			codes[code(number)] = true
		}
		return true
	})
	return codes
}
