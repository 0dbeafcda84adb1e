package jsonschema

import (
	"strings"
	"testing"
)

// Each case resolves the $ref of property x; want is the model of its target.
func TestReferencesInsideDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"the document": {`{"properties":{"x":{"$ref":"#"}}}`, "ref ..."},
		"a pointer": {
			`{"properties":{"x":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"null"}}}`,
			"ref null",
		},
		"a sibling": {`{"properties":{"x":{"$ref":"#/properties/y"},"y":{"type":"null"}}}`, "ref null"},
		"an array":  {`{"properties":{"x":{"$ref":"#/allOf/1"}},"allOf":[{},{"type":"null"}]}`, "ref null"},
		"escaped pointer": {
			`{"properties":{"x":{"$ref":"#/definitions/a~1b~0c"}},"definitions":{"a/b~c":{"type":"null"}}}`,
			"ref null",
		},
		"tilde one": {
			`{"properties":{"x":{"$ref":"#/definitions/~01"}},"definitions":{"~1":{"type":"null"}}}`,
			"ref null",
		},
		"percent encoding": {
			`{"properties":{"x":{"$ref":"#/definitions/a%20b%25c%22"}},"definitions":{"a b%c\"":{"type":"null"}}}`,
			"ref null",
		},
		"not encoded": {
			`{"properties":{"x":{"$ref":"#/definitions/a b"}},"definitions":{"a b":{"type":"null"}}}`,
			"ref null",
		},
		"an unknown place": {
			`{"properties":{"x":{"$ref":"#/components/schemas/a"}},"components":{"schemas":{"a":{"type":"null"}}}}`,
			"ref null",
		},
		"$defs in draft 7": {`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"null"}}}`, "ref null"},
		"$defs bridges": {
			`{"properties":{"x":{"$ref":"#/$defs/a"}},"definitions":{"a":{"type":"null"}}}`,
			"ref null",
		},
		"$defs comes first": {
			`{"properties":{"x":{"$ref":"#/$defs/a"}},"definitions":{"a":{}},"$defs":{"a":{"type":"null"}}}`,
			"ref null",
		},
		"own $id": {
			`{"$id":"http://e/r.json","properties":{"x":{"$ref":"http://e/r.json#/definitions/a"}},` +
				`"definitions":{"a":{"type":"null"}}}`,
			"ref null",
		},
		"own $id, relative": {
			`{"$id":"http://e/r.json","properties":{"x":{"$ref":"r.json#/definitions/a"}},` +
				`"definitions":{"a":{"type":"null"}}}`,
			"ref null",
		},
		"own relative $id": {
			`{"$id":"r.json","properties":{"x":{"$ref":"r.json#/definitions/a"}},"definitions":{"a":{"type":"null"}}}`,
			"ref null",
		},
		"an inner $id": {
			`{"$id":"http://e/d/r.json","properties":{"x":{"$ref":"a.json"}},"definitions":{"a":{"$id":"a.json",` +
				`"type":"null"}}}`,
			"ref null",
		},
		"an $id by its text": {
			`{"$id":"http://e/d/r.json","properties":{"x":{"$ref":"/d/a.json"}},"definitions":{"a":{"$id":"a.json",` +
				`"type":"null"}}}`,
			"ref null",
		},
		"$id as anchor": {
			`{"properties":{"x":{"$ref":"#a"}},"definitions":{"a":{"$id":"#a","type":"null"}}}`,
			"ref null",
		},
		"draft 4 id": {inDraft(draft4,
			`{"properties":{"x":{"$ref":"#a"}},"definitions":{"a":{"id":"#a","type":"null"}}}`), "ref null"},
		"an anchor": {
			in2020(`{"properties":{"x":{"$ref":"#a"}},"$defs":{"a":{"$anchor":"a","type":"null"}}}`),
			"ref null",
		},
		"an inner anchor": {
			in2020(`{"$id":"http://e/r","properties":{"x":{"$ref":"i#a"}},"$defs":{"i":{"$id":"i",` +
				`"$defs":{"a":{"$anchor":"a","type":"null"}}},"a":{"$anchor":"a"}}}`),
			"ref null",
		},
		"nearest $id": {
			in2020(`{"properties":{"x":{"$id":"http://e/i","$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}},` +
				`"$defs":{"a":{}}}`), "ref null",
		},
		"nearest $id has nothing": {
			`{"properties":{"x":{"$id":"http://e/i","allOf":[{"$ref":"#/definitions/a"}]}},` +
				`"definitions":{"a":{"type":"null"}}}`, "allOf(ref null)",
		},
		"an $id beside $ref": {
			`{"$id":"http://e/d/","properties":{"x":{"$id":"http://e/","$ref":"a"}},"definitions":{"a":` +
				`{"$id":"http://e/a"},"b":{"$id":"a","type":"null"}}}`, "ref null",
		},
		"an $id in an enum": {
			`{"properties":{"x":{"$ref":"http://e/a"}},"enum":[{"$id":"http://e/a"}],"definitions":{"b":` +
				`{"$id":"http://e/a","type":"null"}}}`, "ref null",
		},
		"an $id nobody knows yields": {
			`{"x":{"$id":"http://e/a"},"properties":{"x":{"$ref":"http://e/a"}},"definitions":{"b":` +
				`{"$id":"http://e/a","type":"null"}}}`, "ref null",
		},
		"a metaschema": {
			`{"properties":{"x":{"$ref":"http://json-schema.org/draft-04/schema#"}}}`,
			"ref meta http://json-schema.org/draft-04/schema#",
		},
		"part of a metaschema": {
			`{"properties":{"x":{"$ref":"http://json-schema.org/draft-07/schema#/definitions/a"}}}`,
			"ref meta http://json-schema.org/draft-07/schema#/definitions/a",
		},
		"a vocabulary": {
			`{"properties":{"x":{"$ref":"https://json-schema.org/draft/2020-12/meta/core"}}}`,
			"ref meta https://json-schema.org/draft/2020-12/meta/core#",
		},
		"a property named $ref": {
			`{"properties":{"$ref":{"type":"string"},"x":{"$ref":"#/properties/$ref"}}}`,
			"ref string",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, c.text)
			root := s.root
			if root.kind == kindCombined {
				for _, facet := range root.combined.branches {
					if facet.kind == kindObject {
						root = facet
					}
				}
			}
			p := &printer{above: []*node{s.root}}
			if got := p.node(root.object.properties["x"]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestUnresolvedReferences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a missing pointer":  {`{"$ref":"#/definitions/a"}`, `"#/definitions/a"`},
		"a missing member":   {`{"$ref":"#/definitions/b","definitions":{"a":{}}}`, `"b" does not exist`},
		"a missing anchor":   {`{"$ref":"#a"}`, "anchor does not exist"},
		"a web address":      {`{"items":{"$ref":"http://example.com/a.json"}}`, `"http://example.com/a.json"`},
		"a file":             {`{"items":{"$ref":"file:///etc/passwd"}}`, `"file:///etc/passwd"`},
		"a path":             {`{"items":{"$ref":"../other.json#/a"}}`, `"../other.json#/a"`},
		"in an unused place": {`{"definitions":{"a":{"$ref":"nowhere.json"}}}`, `"nowhere.json"`},
		"a dynamic one": {
			in2020(`{"items":{"$dynamicRef":"http://example.com/a#n"}}`),
			`"http://example.com/a#n"`,
		},
		"no schema there":        {`{"$ref":"#/title","title":"a"}`, "does not lead to a schema"},
		"a bad index":            {`{"$ref":"#/allOf/9","allOf":[{}]}`, `"9" does not exist`},
		"a negative index":       {`{"$ref":"#/allOf/-1","allOf":[{}]}`, `"-1" does not exist`},
		"definitions, not $defs": {`{"$ref":"#/definitions/a","$defs":{"a":{}}}`, `"#/definitions/a"`},
		"a made-up metaschema":   {`{"$ref":"http://json-schema.org/draft-99/schema"}`, "draft-99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(c.text, nil, nil)
			if err == nil || !strings.Contains(err.Error(), "unresolved reference") ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestRegisteredReferences(t *testing.T) {
	t.Parallel()
	null := mustParse(t, `{"type":"null","definitions":{"s":{"type":"string"}}}`)
	named := mustParse(t, `{"$id":"http://e/named.json","type":"integer"}`)
	nested := mustParse(t, `{"items":{"$ref":"null.json#/definitions/s"}}`, Reference{"null.json", null})
	for name, c := range map[string]struct {
		text string
		refs []Reference
		want string
	}{
		"by name":            {`{"$ref":"null.json"}`, []Reference{{"null.json", null}}, "ref null"},
		"with a fragment":    {`{"$ref":"null.json#/definitions/s"}`, []Reference{{"null.json", null}}, "ref string"},
		"through the bridge": {`{"$ref":"null.json#/$defs/s"}`, []Reference{{"null.json", null}}, "ref string"},
		"an empty fragment":  {`{"$ref":"null.json#"}`, []Reference{{"null.json", null}}, "ref null"},
		"an absolute name": {
			`{"$ref":"http://a.b/null.json"}`,
			[]Reference{{"http://a.b/null.json", null}},
			"ref null",
		},
		"relative to the $id": {
			`{"$id":"http://a.b/c/r.json","items":{"$ref":"null.json"}}`,
			[]Reference{{"http://a.b/c/null.json", null}},
			"array[all:ref null]",
		},
		"the name is relative": {
			`{"$id":"http://a.b/c/r.json","items":{"$ref":"null.json"}}`,
			[]Reference{{"null.json", null}},
			"array[all:ref null]",
		},
		"only the name is": {
			`{"$id":"http://a.b/c/r.json","items":{"$ref":"http://a.b/c/null.json"}}`,
			[]Reference{{"null.json", null}},
			"array[all:ref null]",
		},
		"with a dot": {
			`{"$id":"r.json","items":{"$ref":"./null.json#/definitions/s"}}`,
			[]Reference{{"null.json", null}},
			"array[all:ref string]",
		},
		"without an $id": {`{"items":{"$ref":"./null.json"}}`, []Reference{{"null.json", null}}, "array[all:ref null]"},
		"a name like a host": {
			`{"$ref":"example.com/null.json"}`,
			[]Reference{{"example.com/null.json", null}},
			"ref null",
		},
		"a urn": {
			`{"$id":"urn:a:b","items":{"$ref":"urn:a:null"}}`,
			[]Reference{{"urn:a:null", null}},
			"array[all:ref null]",
		},
		"a name with a fragment": {`{"$ref":"n#x"}`, []Reference{{"n#x", null}}, "ref null"},
		"no URI at all":          {`{"$ref":"a b\\c%"}`, []Reference{{"a b\\c%", null}}, "ref null"},
		"by the $id behind it":   {`{"$ref":"http://e/named.json"}`, []Reference{{"other", named}}, "ref integer"},
		"of a reference": {
			`{"$ref":"nested.json"}`,
			[]Reference{{"nested.json", nested}},
			"ref array[all:ref string]",
		},
		"a reference's reference": {`{"$ref":"null.json"}`, []Reference{{"nested.json", nested}}, "ref null"},
		"the document wins": {
			`{"$ref":"http://e/x","definitions":{"x":{"$id":"http://e/x","type":"boolean"}}}`,
			[]Reference{{"http://e/x", null}},
			"ref boolean",
		},
		"another draft": {
			in2020(`{"$ref":"null.json","type":"object"}`),
			[]Reference{{"null.json", null}},
			"allOf(ref null,object{})",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := show(mustParse(t, c.text, c.refs...).root); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if _, err := Parse(`{}`, []Reference{{Name: "x"}}, nil); err == nil {
		t.Error("a reference without a schema was accepted")
	}
}

// A change of a referenced schema is a change of the schema that uses it.
func TestCompareThroughReferences(t *testing.T) {
	t.Parallel()
	text := obj(`"a":{"$ref":"common.json"}`, "")
	old := mustParse(t, text, Reference{"common.json", mustParse(t, `{"type":"string"}`)})
	next := mustParse(t, text, Reference{"common.json", mustParse(t, `{"type":"string","maxLength":5}`)})
	differences := mustCompare(t, old, next)
	if len(differences) != 1 || differences[0].Type != "MAX_LENGTH_ADDED" ||
		differences[0].Path != "#/properties/a/maxLength" {
		t.Errorf("got %v, want MAX_LENGTH_ADDED at #/properties/a/maxLength", differences)
	}
	if back := mustCompare(t, next, old); len(back) != 1 || !back[0].Compatible {
		t.Errorf("back: got %v, want one compatible difference", back)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, name, want string }{
		{"", "a.json", "a.json"},
		{"", "./a.json", "a.json"},
		{"http://e/d/r.json", "a.json", "http://e/d/a.json"},
		{"http://e/d/r.json", "../a.json", "http://e/a.json"},
		{"http://e/d/r.json", "/a.json", "http://e/a.json"},
		{"http://e/d/", "a", "http://e/d/a"},
		{"http://e/d/r.json", "urn:x:y", "urn:x:y"},
		{"urn:x:y", "a.json", "a.json"},
		{"r.json", "a.json", "a.json"},
		{"d/r.json", "a.json", "d/a.json"},
		{"d/r.json", "./e/a.json", "d/e/a.json"},
		{"d/r.json", "/a.json", "/a.json"},
		{"%zz", "a.json", "a.json"},
		{"http://e/", "%zz", "%zz"},
	} {
		if got := join(c.base, c.name); got != c.want {
			t.Errorf("join(%q, %q) = %q, want %q", c.base, c.name, got, c.want)
		}
	}
}
