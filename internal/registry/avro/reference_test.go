package avro_test

import (
	"strings"
	"testing"

	"freshet/internal/registry/avro"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	const (
		a       = `{"type":"record","name":"A","namespace":"n","fields":[{"name":"x","type":"int"}]}`
		nesting = `{"type":"record","name":"Outer","fields":[{"name":"e","type":{"type":"enum","name":"Inner",` +
			`"symbols":["Q"]}}]}`
	)
	tests := map[string]struct {
		refs                      []string
		text, canonical, resolved string
	}{
		"by full name": {
			[]string{a},
			record("B", `{"name":"a","type":"n.A"}`),
			record("B", `{"name":"a","type":"n.A"}`),
			record("B", `{"name":"a","type":`+a+`}`),
		},
		"by relative name": {
			[]string{a},
			`{"type":"record","name":"n.B","fields":[{"name":"a","type":"A"},{"name":"b","type":"n.A"}]}`,
			`{"type":"record","name":"B","namespace":"n","fields":[{"name":"a","type":"A"},{"name":"b","type":"A"}]}`,
			`{"type":"record","name":"B","namespace":"n","fields":[{"name":"a","type":{"type":"record","name":"A",` +
				`"fields":[{"name":"x","type":"int"}]}},{"name":"b","type":"A"}]}`,
		},
		"of a reference": {
			[]string{a, record("B", `{"name":"a","type":"n.A"}`)},
			record("C", `{"name":"b","type":"B"}`),
			record("C", `{"name":"b","type":"B"}`),
			record("C", `{"name":"b","type":`+record("B", `{"name":"a","type":`+a+`}`)+`}`),
		},
		"a type inside one": {
			[]string{nesting},
			record("R", `{"name":"i","type":"Inner"}`),
			record("R", `{"name":"i","type":"Inner"}`),
			record("R", `{"name":"i","type":{"type":"enum","name":"Inner","symbols":["Q"]}}`),
		},
		"a type inside one, sent along": {
			[]string{nesting},
			record("R", `{"name":"i","type":{"type":"enum","name":"Inner","doc":"changed","symbols":["Q"]}}`),
			record("R", `{"name":"i","type":"Inner"}`),
			record("R", `{"name":"i","type":{"type":"enum","name":"Inner","symbols":["Q"]}}`),
		},
		"a branch of a union": {
			[]string{`["null",` + a + `]`}, `["string","n.A"]`, `["string","n.A"]`, `["string",` + a + `]`,
		},
		"nothing else": {[]string{a}, `"n.A"`, `"n.A"`, a},
		"unused":       {[]string{a}, `"int"`, `"int"`, `"int"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parseWith(t, tc.refs, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if s.Canonical() != tc.canonical {
				t.Errorf("canonical\n got  %s\n want %s", s.Canonical(), tc.canonical)
			}
			if s.Normalized() != tc.canonical {
				t.Errorf("normalized\n got  %s\n want %s", s.Normalized(), tc.canonical)
			}
			if s.Resolved() != tc.resolved {
				t.Errorf("resolved\n got  %s\n want %s", s.Resolved(), tc.resolved)
			}
			// The stored text must have the same meaning as the original, and the resolved
			// text the same meaning as both.
			again, err := parseWith(t, tc.refs, s.Canonical())
			if err != nil {
				t.Fatal(err)
			}
			inline := mustParse(t, s.Resolved())
			if again.Resolved() != s.Resolved() || inline.Canonical() != s.Resolved() {
				t.Errorf("read again: got %s and %s, want %s", again.Resolved(), inline.Canonical(), s.Resolved())
			}
			if problems := append(problemsOf(inline, s), problemsOf(s, inline)...); len(problems) != 0 {
				t.Errorf("inline and by reference: got %v, want no problems", problems)
			}
		})
	}
}

func TestReferencesThatConflict(t *testing.T) {
	t.Parallel()
	v1 := mustParse(t, record("Inner", `{"name":"f","type":"int"}`))
	v2 := mustParse(t, record("Inner", `{"name":"f","type":"string"}`))
	middle, err := avro.Parse(record("Middle", `{"name":"i","type":"Inner"}`),
		[]avro.Reference{{Name: "Inner", Schema: v2}})
	if err != nil {
		t.Fatal(err)
	}
	root := record("Root", `{"name":"m","type":"Middle"}`, `{"name":"i","type":"Inner"}`)

	// The first listed version of a type is used everywhere.
	s, err := avro.Parse(root, []avro.Reference{{Name: "Inner", Schema: v1}, {Name: "Middle", Schema: middle}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Resolved(), `"type":"int"`) || strings.Contains(s.Resolved(), `"type":"string"`) {
		t.Errorf("version 1 first: got %s, want type int", s.Resolved())
	}
	s, err = avro.Parse(root, []avro.Reference{{Name: "Middle", Schema: middle}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Resolved(), `"type":"string"`) {
		t.Errorf("version 2 by way of Middle: got %s, want type string", s.Resolved())
	}

	s, err = avro.Parse(root, []avro.Reference{{Name: "Middle", Schema: middle}, {Name: "Inner", Schema: v1}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Resolved(), `"type":"string"`) || strings.Contains(s.Resolved(), `"type":"int"`) {
		t.Errorf("version 2 first, by way of Middle: got %s, want type string", s.Resolved())
	}

	_, err = avro.Parse(root, []avro.Reference{{Name: "1", Schema: v1}, {Name: "2", Schema: v2}})
	if err == nil || !strings.Contains(err.Error(), "Can't redefine: Inner") {
		t.Errorf("two definitions: got %v, want that Inner cannot be redefined", err)
	}
	_, err = avro.Parse(record("Inner"), []avro.Reference{{Name: "1", Schema: v1}})
	if err == nil || !strings.Contains(err.Error(), "Can't redefine: Inner") {
		t.Errorf("defined again: got %v, want that Inner cannot be redefined", err)
	}
	_, err = avro.Parse(root, []avro.Reference{{Name: "gone"}})
	if err == nil {
		t.Error("a reference without a schema is accepted")
	}
}

// TestReferencesThatAgree checks that equal definitions from different references do not
// conflict.
func TestReferencesThatAgree(t *testing.T) {
	t.Parallel()
	const inner = `{"type":"record","name":"Inner","fields":[{"name":"next","type":["null","Inner"]}]}`
	one, two := mustParse(t, inner), mustParse(t, inner)
	middle, err := avro.Parse(record("Middle", `{"name":"i","type":"Inner"}`),
		[]avro.Reference{{Name: "Inner", Schema: two}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := avro.Parse(record("Root", `{"name":"m","type":"Middle"}`, `{"name":"i","type":"Inner"}`),
		[]avro.Reference{{Name: "Inner", Schema: one}, {Name: "Middle", Schema: middle}, {Name: "Inner", Schema: one}})
	if err != nil {
		t.Fatal(err)
	}
	want := record("Root", `{"name":"m","type":`+record("Middle", `{"name":"i","type":`+inner+`}`)+`}`,
		`{"name":"i","type":"Inner"}`)
	if s.Resolved() != want {
		t.Errorf("resolved\n got  %s\n want %s", s.Resolved(), want)
	}
}
