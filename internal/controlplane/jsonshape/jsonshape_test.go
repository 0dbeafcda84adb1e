package jsonshape_test

import (
	"reflect"
	"testing"

	"freshet/internal/controlplane/jsonshape"
)

func TestDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		``: 0, `1`: 0, `{}`: 1, `[[],[[]]]`: 3, `{"a":{"b":[1]}}`: 3, `"[[["`: 0, `{"[\"[":"{"}`: 1, `{"a\\":[]}`: 2,
	} {
		if got := jsonshape.Depth([]byte(text)); got != want {
			t.Errorf("depth of %s: got %d, want %d", text, got, want)
		}
	}
}

func TestFieldType(t *testing.T) {
	t.Parallel()
	type embedded struct {
		Inner int `json:"inner"`
	}
	type named struct {
		Inner int `json:"other"`
	}
	type outer struct {
		embedded
		named  `json:"named"`
		Text   string          `json:"text,omitempty"`
		Values map[string]bool `json:"values"`
		Hidden float64
	}
	of := reflect.TypeFor[outer]()
	for name, want := range map[string]reflect.Type{
		"inner": reflect.TypeFor[int](), "text": reflect.TypeFor[string](), "named": reflect.TypeFor[named](),
		"values": reflect.TypeFor[map[string]bool](), "other": nil, "Hidden": nil, "absent": nil,
	} {
		if got := jsonshape.FieldType(of, name); got != want {
			t.Errorf("type of %s: got %v, want %v", name, got, want)
		}
	}
	if got := jsonshape.FieldType(reflect.TypeFor[map[string]bool](), "any"); got != reflect.TypeFor[bool]() {
		t.Errorf("type of a map's values: got %v, want bool", got)
	}
	if got := jsonshape.FieldType(reflect.TypeFor[string](), "any"); got != nil {
		t.Errorf("field of a text: got %v, want none", got)
	}
}
