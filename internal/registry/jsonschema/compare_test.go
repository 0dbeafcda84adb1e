package jsonschema

import (
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string, refs ...Reference) *Schema {
	t.Helper()
	s, err := Parse(text, refs, nil)
	if err != nil {
		t.Fatalf("Parse(%s): %v", clip(text, 300), err)
	}
	return s
}

func mustCompare(t testing.TB, old, next *Schema) []Difference {
	t.Helper()
	differences, err := Compare(old, next, nil)
	if err != nil {
		t.Fatalf("Compare: %v", err)
	}
	return differences
}

// in2020 puts the marker of draft 2020-12 into a schema object.
func in2020(text string) string { return inDraft(draft2020, text) }

func inDraft(d draft, text string) string {
	head := `{"$schema":"` + draftInfo[d].url + `"`
	if text == "{}" {
		return head + "}"
	}
	return head + "," + strings.TrimPrefix(text, "{")
}

// obj wraps properties and more keywords into an object schema.
func obj(properties, more string) string {
	return `{"type":"object","properties":{` + properties + `}` + more + `}`
}

const closed = `,"additionalProperties":false`
