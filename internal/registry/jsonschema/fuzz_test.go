package jsonschema

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"freshet/internal/registry/jsontree"
)

var fuzzSeeds = []string{
	`true`, `false`, `{}`, `{"type":"string","minLength":1}`, `{"$ref":"#"}`, `{"not":{"$ref":"#"}}`,
	`{"type":["string","null"],"enum":["a",null],"default":"a"}`,
	`{"type":"object","properties":{"a":{"$ref":"#/definitions/a"},"b":{"type":"integer","maximum":1e400}},` +
		`"required":["a"],"patternProperties":{"^x(?=y)":false},"additionalProperties":{"oneOf":[{"type":"null"},` +
		`{"$ref":"#"}]},"definitions":{"a":{"$id":"http://e/a","allOf":[{"$ref":"#/definitions/a"}]}}}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://e/r","items":[{"maximum":1,` +
		`"exclusiveMaximum":true}],"additionalItems":false,"dependencies":{"a":["b"],"c":{}}}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"items":{"$recursiveRef":"#"},` +
		`"dependentRequired":{"a":["b"]},"unevaluatedItems":false}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"r","$dynamicAnchor":"n",` +
		`"prefixItems":[{"$dynamicRef":"#n"}],"items":{"$anchor":"x"},"contains":{"$ref":"#x"},"minContains":2,` +
		`"$defs":{"a":{"if":{},"then":false}}}`,
	"{\"title\":\"\\ud800\\u0000\xff\"}", `{"a":1,"a":2}`, `{"pattern":"(a+)+$"}`, `[[[[`, `{"type":`,
}

func FuzzParse(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, nil, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || err.Error() == "" {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		again, err := Parse(s.Canonical(), nil, nil)
		if err != nil || again.Canonical() != s.Canonical() {
			t.Fatalf("canonical text %s: %v", s.Canonical(), err)
		}
		differences, err := Compare(s, again, nil)
		if err == nil && incompatible(differences) > 0 {
			t.Fatalf("%s is incompatible with itself: %v", text, differences)
		}
	})
}

func FuzzCompare(f *testing.F) {
	for _, old := range fuzzSeeds {
		for _, next := range fuzzSeeds[:8] {
			f.Add(old, next)
		}
	}
	f.Fuzz(func(t *testing.T, oldText, newText string) {
		old, err := Parse(oldText, nil, nil)
		if err != nil {
			return
		}
		next, err := Parse(newText, nil, nil)
		if err != nil {
			return
		}
		differences, err := Compare(old, next, nil)
		if err != nil && !errors.Is(err, ErrTooComplex) {
			t.Fatalf("Compare: %v", err)
		}
		for _, d := range differences {
			if info, known := changes[change(d.Type)]; !known || info.compatible != d.Compatible ||
				!strings.HasPrefix(d.Path, "#/") {
				t.Fatalf("invalid difference: %+v", d)
			}
		}
	})
}

// TestReferencesAreTransparent moves every part of a schema into definitions, which must
// not change the results. Equal inline parts are skipped without a comparison and equal
// parts behind references are not, so the test also checks that shortcut.
func TestReferencesAreTransparent(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if large() {
		rounds = 50_000
	}
	verdicts := map[bool]int{}
	for i := range rounds {
		g := &generator{Rand: rand.New(rand.NewPCG(11, uint64(i))), draft: draft7}
		oldText := `{"allOf":[` + g.schema(3) + `]}`
		newText := mutate(g, oldText)
		inline := mustCompare(t, mustParse(t, oldText), mustParse(t, newText))
		behind := mustCompare(t, mustParse(t, refer(t, oldText)), mustParse(t, refer(t, newText)))
		if a, b := incompatibleOnly(inline), incompatibleOnly(behind); !slices.Equal(a, b) {
			t.Fatalf("old %s\nnew %s\ninline %v\nby reference %v", oldText, newText, a, b)
		}
		verdicts[len(incompatibleOnly(inline)) == 0]++
		if d := mustCompare(t, mustParse(t, refer(t, oldText)), mustParse(t, oldText)); len(incompatibleOnly(d)) > 0 {
			t.Fatalf("%s and its form with references differ: %v", oldText, d)
		}
	}
	if verdicts[true] < rounds/10 || verdicts[false] < rounds/10 {
		t.Errorf("the generator produces too few of one result: %v", verdicts)
	}
}

func incompatibleOnly(differences []Difference) []string {
	var found []string
	for _, d := range differences {
		if !d.Compatible {
			found = append(found, d.Type+" "+d.Path)
		}
	}
	return found
}

// mutate changes random numbers and words of a schema.
func mutate(g *generator, text string) string {
	for range 1 + g.IntN(2) {
		swaps := [][2]string{
			{`"integer"`, `"number"`},
			{`:1`, `:2`},
			{`"oneOf"`, `"anyOf"`},
			{`"required":["a"]`, `"required":["a","b"]`},
			{`{}`, `{"type":"string"}`},
			{`"a":`, `"d":`},
			{`true`, `false`},
			{`:0`, `:1`},
			{`"t"`, `"u"`},
		}
		swap := swaps[g.IntN(len(swaps))]
		if g.IntN(2) == 0 {
			swap[0], swap[1] = swap[1], swap[0]
		}
		changed := strings.Replace(text, swap[0], swap[1], 1)
		if _, err := Parse(changed, nil, nil); err == nil {
			text = changed
		}
	}
	return text
}

// refer moves every subschema into definitions.
func refer(t *testing.T, text string) string {
	t.Helper()
	root, err := parseValue(text)
	if err != nil {
		t.Fatal(err)
	}
	sums := newDigests(root)
	definitions := map[string]string{}
	var move func(v *jsontree.Value, as keywordKind) string
	move = func(v *jsontree.Value, as keywordKind) string {
		switch {
		case v.Kind == jsontree.Array && (as == schemaList || as == oneOrList):
			return "[" + list(v.Len(), func(i int) string { return move(&v.List.Values[i], oneSchema) }) + "]"
		case v.Kind == jsontree.Object && (as == schemaMap || as == mapOrNames):
			return "{" + list(v.Len(), func(i int) string {
				return fmt.Sprintf("%q:%s", v.List.Keys[i], move(&v.List.Values[i], oneSchema))
			}) + "}"
		case v.Kind != jsontree.Object || (as != oneSchema && as != oneOrList):
			return emit(v)
		}
		inside := "{" + list(v.Len(), func(i int) string {
			return fmt.Sprintf("%q:%s", v.List.Keys[i], move(&v.List.Values[i], keywordKinds[v.List.Keys[i]]))
		}) + "}"
		if v == root {
			return inside
		}
		// Equal schemas share one definition, so that duplicates in a union stay duplicates.
		name := fmt.Sprintf("d%x", sums.of(v).hash)
		definitions[name] = inside
		return `{"$ref":"#/definitions/` + name + `"}`
	}
	moved := move(root, oneSchema)
	names := sortedKeys(definitions)
	return strings.TrimSuffix(moved, "}") + `,"definitions":{` +
		list(len(names), func(i int) string { return fmt.Sprintf("%q:%s", names[i], definitions[names[i]]) }) + "}}"
}
