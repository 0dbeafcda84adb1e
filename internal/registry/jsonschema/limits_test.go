package jsonschema

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/test/growth"
)

// compareSteps compares two schemas and fails the test if that needs more than limit steps. Steps are
// counted in portions of spendEvery.
func compareSteps(t *testing.T, limit int, old, next *Schema) []Difference {
	t.Helper()
	steps := 0
	differences, err := Compare(old, next, func(n int) error {
		steps += n
		return nil
	})
	if err != nil {
		t.Fatalf("Compare: %v", err)
	}
	if t.Logf("%d steps", steps); steps > limit {
		t.Errorf("got %d steps, want at most %d", steps, limit)
	}
	return differences
}

// large reports whether to test with the largest sizes that the registry accepts.
func large() bool { return os.Getenv("FRESHET_LARGE_TESTS") != "" }

func incompatible(differences []Difference) int {
	n := 0
	for _, d := range differences {
		if !d.Compatible {
			n++
		}
	}
	return n
}

// list joins n parts made by f with commas.
func list(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

func TestRecursiveSchemas(t *testing.T) {
	t.Parallel()
	tree := func(leaf string) string {
		return `{"type":"object","properties":{"v":{"type":"` + leaf +
			`"},"l":{"$ref":"#"},"r":{"oneOf":[{"type":"null"},{"$ref":"#"}]}}}`
	}
	mutual := func(leaf string) string {
		return obj(`"a":{"$ref":"#/definitions/a"}`, `,"definitions":{
			"a":{"type":"object","properties":{"b":{"$ref":"#/definitions/b"}}},
			"b":{"type":"array","items":{"anyOf":[{"$ref":"#/definitions/a"},{"type":"`+leaf+`"}]}}}`)
	}
	for name, c := range map[string]struct {
		old, next string
		want      string // of the first incompatible difference
	}{
		"the same tree":    {tree("string"), tree("string"), ""},
		"a changed leaf":   {tree("string"), tree("integer"), "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/properties/r"},
		"a widened leaf":   {tree("integer"), tree("number"), ""},
		"mutual, the same": {mutual("string"), mutual("string"), ""},
		"mutual, changed": {
			mutual("string"), mutual("null"),
			"COMBINED_TYPE_SUBSCHEMAS_CHANGED #/properties/a/properties/b/items",
		},
		"recursion unrolled": {`{"items":{"$ref":"#"}}`, `{"items":{"items":{"$ref":"#"}}}`, ""},
		"not of itself":      {`{"not":{"$ref":"#"}}`, `{"not":{"$ref":"#"}}`, ""},
		"anyOf of itself": {
			`{"anyOf":[{"$ref":"#"},{"type":"string"}]}`,
			`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`, "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
		},
		"a dynamic tree": {
			in2020(`{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"},"maxItems":3}`),
			in2020(`{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"},"maxItems":2}`),
			"MAX_ITEMS_DECREASED #/maxItems",
		},
		"through a definition": {
			`{"$ref":"#/definitions/a","definitions":{"a":{"items":{"$ref":"#"}}}}`,
			`{"items":{"$ref":"#"}}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, d := range mustCompare(t, mustParse(t, c.old), mustParse(t, c.next)) {
				if !d.Compatible {
					got = d.Type + " " + d.Path
					break
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A difference behind a cycle must reach every pair that was evaluated before it was found.
// T0 leads to T2 and T2 back to T0, while the root is a union of T0 and T1; a single pass
// with a cache would report these schemas as compatible.
func TestCycleDoesNotMaskDifference(t *testing.T) {
	t.Parallel()
	schema := func(id0, id1 string) string {
		part := func(id, next string) string {
			return obj(`"id":{"type":"`+id+`"},"ref":{"oneOf":[{"$ref":"#/definitions/`+next+`"}]}`, "")
		}
		return obj(`"root":{"oneOf":[{"$ref":"#/definitions/T0"},{"$ref":"#/definitions/T1"}]}`,
			`,"definitions":{"T0":`+part(id0, "T2")+`,"T1":`+part(id1, "T2")+`,"T2":`+part("integer", "T0")+`}`)
	}
	old, next := mustParse(t, schema("integer", "boolean")), mustParse(t, schema("boolean", "number"))
	if incompatible(mustCompare(t, old, next)) == 0 {
		t.Error("the difference was masked")
	}
	if incompatible(mustCompare(t, old, old)) != 0 {
		t.Error("a schema is not compatible with itself")
	}
}

// B is evaluated while A is being evaluated, and depends on it; then A turns out to be
// incompatible. The result of B at p must change, although q does not depend on A.
func TestLateVerdictReachesDependents(t *testing.T) {
	t.Parallel()
	schema := func(p, q, v string) string {
		return obj(`"p":`+p+`,"q":`+q, `,"definitions":{
			"A":`+obj(`"b":{"$ref":"#/definitions/B"},"v":{"type":"`+v+`"}`, "")+`,
			"B":`+obj(`"a":{"$ref":"#/definitions/A"}`, "")+`}`)
	}
	const a, b = `{"$ref":"#/definitions/A"}`, `{"$ref":"#/definitions/B"}`
	old := mustParse(t, schema(`{"oneOf":[`+b+`]}`, a, "string"))
	next := mustParse(t, schema(`{"oneOf":[`+b+`,{"type":"null"}]}`, `{"anyOf":[`+a+`,{}]}`, "integer"))
	want := []string{"COMBINED_TYPE_SUBSCHEMAS_CHANGED #/properties/p"}
	if got := incompatibleOnly(mustCompare(t, old, next)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// products is a union of n types, each with p properties that lead back to the union. A
// comparison without caching takes hours for it.
func products(n, p int, id string) string {
	types := list(n, func(i int) string {
		refs := list(p, func(k int) string { return fmt.Sprintf(`"ref%d":{"$ref":"#/$defs/ProductOrId"}`, k) })
		return fmt.Sprintf(`"T%d":{"$ref":"#/$defs/Base","type":"object","properties":{%s,"tag":{"type":"string",`+
			`"const":"t%d"}},"required":["ref0","tag"]}`, i, refs, i)
	})
	union := list(n, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/T%d"}`, i) })
	return in2020(`{"$ref":"#/$defs/Product","$defs":{
		"Base":{"type":"object","properties":{"name":{"type":"string"}}},
		"Id":{"type":"object","properties":{"id":{"type":"` + id + `"}},"required":["id"]},
		"ProductOrId":{"oneOf":[{"$ref":"#/$defs/Id"},{"$ref":"#/$defs/Product"}]},
		"Product":{"oneOf":[` + union + `]},` + types + `}}`)
}

func TestUnionsOfReferences(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ n, p int }{{2, 1}, {12, 5}, {40, 8}} {
		old := mustParse(t, products(size.n, size.p, "string"))
		same := mustParse(t, products(size.n, size.p, "string"))
		another := mustParse(t, products(size.n, size.p, "integer"))
		if n := incompatible(compareSteps(t, 1_000_000, old, same)); n != 0 {
			t.Errorf("%v: got %d incompatible differences, want none", size, n)
		}
		if incompatible(compareSteps(t, 1_000_000, old, another)) == 0 {
			t.Errorf("%v: the difference was not found", size)
		}
	}
}

// a0 refers to a1 twice, a1 to a2 twice, and so on: 2^n paths, n pairs.
func doubling(n int, leaf string) string {
	return `{"$ref":"#/definitions/a0","definitions":{` + list(n, func(i int) string {
		return fmt.Sprintf(`"a%d":{"type":"object","properties":{"x":{"$ref":"#/definitions/a%d"},`+
			`"y":{"oneOf":[{"$ref":"#/definitions/a%d"},{"type":"null"}]}}}`, i, i+1, i+1)
	}) + fmt.Sprintf(`,"a%d":{"type":%q}}}`, n, leaf)
}

func TestManyPathsToOneDifference(t *testing.T) {
	t.Parallel()
	t.Run("doubling", func(t *testing.T) {
		t.Parallel()
		old := mustParse(t, doubling(60, "string"))
		for leaf, want := range map[string]bool{"string": true, "integer": false} {
			if got := incompatible(compareSteps(t, 100_000, old, mustParse(t, doubling(60, leaf)))) == 0; got != want {
				t.Errorf("%s: got compatible %v, want %v", leaf, got, want)
			}
		}
	})
	t.Run("a title 60 levels down", func(t *testing.T) {
		t.Parallel()
		twice := func(title string) string {
			return `{"$ref":"#/definitions/a0","definitions":{` + list(60, func(i int) string {
				return fmt.Sprintf(`"a%d":{"type":"object","properties":{"x":{"$ref":"#/definitions/a%d"},`+
					`"y":{"$ref":"#/definitions/a%d"}}}`, i, i+1, i+1)
			}) + `,"a60":{"type":"string","title":"` + title + `"}}}`
		}
		if got := compareSteps(t, 100_000, mustParse(t, twice("a")), mustParse(t, twice("b"))); len(got) == 0 ||
			len(got) > maxDifferences {
			t.Errorf("got %d differences, want 1 to %d", len(got), maxDifferences)
		}
	})
	t.Run("a verdict behind too many titles", func(t *testing.T) {
		t.Parallel()
		// The walk over the titles ends at its limit before it reaches the type.
		both := func(title, leaf string) string {
			return `{"type":"object","properties":{"a":{"$ref":"#/definitions/a0"},"z":{"$ref":"#/definitions/z"}},` +
				`"definitions":{` + list(40, func(i int) string {
				return fmt.Sprintf(`"a%d":{"type":"object","properties":{"x":{"$ref":"#/definitions/a%d"},`+
					`"y":{"$ref":"#/definitions/a%d"}}}`, i, i+1, i+1)
			}) + `,"a40":{"type":"string","title":"` + title + `"},"z":{"type":"array","items":{"type":"` +
				leaf + `"}}}}`
		}
		got := compareSteps(t, 100_000, mustParse(t, both("a", "string")), mustParse(t, both("b", "null")))
		if incompatible(got) != 1 || got[len(got)-1].Path != "#/properties/z/items" {
			t.Errorf("no incompatible difference reported: %d differences, last %v", len(got), got[len(got)-1])
		}
	})
}

func TestLargeSchemas(t *testing.T) { //nolint:paralleltest // measures CPU time
	size := 16_000
	if large() {
		size = 190_000 // about 5 MB
	}
	wide := func(d draft, size int, leaf string) string {
		return inDraft(d, obj(list(size, func(i int) string { return fmt.Sprintf(`"p%d":{"type":%q}`, i, leaf) }), ""))
	}
	growth.CheckLinear(t, "a wide schema", size, func(size int) {
		old, next := mustParse(t, wide(draft7, size, "string")), mustParse(t, wide(draft7, size, "number"))
		if got := mustCompare(t, old, next); len(got) != min(size, maxDifferences) {
			t.Errorf("got %d differences, want %d", len(got), min(size, maxDifferences))
		}
	})
	growth.CheckLinear(t, "a wide modern schema", size, func(size int) {
		mustParse(t, wide(draft2020, size, "string"))
	})
	chain := func(size int, leaf string) string {
		return `{"$ref":"#/definitions/a0","definitions":{` + list(size, func(i int) string {
			return fmt.Sprintf(`"a%d":{"items":{"$ref":"#/definitions/a%d"}}`, i, i+1)
		}) + fmt.Sprintf(`,"a%d":{"type":%q}}}`, size, leaf)
	}
	growth.CheckLinear(t, "a long chain", size/4, func(size int) {
		got := mustCompare(t, mustParse(t, chain(size, "string")), mustParse(t, chain(size, "null")))
		if incompatible(got) != 1 || len(got[0].Path) > 10_000 {
			t.Errorf("%d differences, the first at %d bytes of path", len(got), len(got[0].Path))
		}
	})
	growth.CheckLinear(t, "a nested regular expression", 16_000, func(size int) {
		text := `{"pattern":"` + strings.Repeat("(", size) + strings.Repeat(")", size) + `"}`
		if _, err := Parse(text, nil, nil); err != nil {
			t.Logf("rejected: %v", clip(err.Error(), 100))
		}
	})
}

func TestWideUnion(t *testing.T) {
	t.Parallel()
	union := func(from int) string {
		return `{"oneOf":[` + list(1200, func(i int) string {
			return fmt.Sprintf(`{"type":"object","properties":{"k":{"const":%d}}}`, from+i)
		}) + `]}`
	}
	if got := mustCompare(t, mustParse(t, union(0)), mustParse(t, union(0))); len(got) != 0 {
		t.Errorf("got %d differences, want none", len(got))
	}
	_, err := Compare(mustParse(t, union(0)), mustParse(t, union(1_000_000)), nil)
	if !errors.Is(err, ErrTooComplex) || errs.KindOf(err) != errs.Invalid {
		t.Errorf("1,200 branches each way: %v", err)
	}
}

func TestDeepSchemas(t *testing.T) {
	t.Parallel()
	nested := func(n int, leaf string) string {
		return strings.Repeat(`{"oneOf":[`, n) + leaf + strings.Repeat(`]}`, n)
	}
	t.Run("as deep as it goes", func(t *testing.T) {
		t.Parallel()
		old, next := mustParse(t, nested(490, `{"type":"string"}`)), mustParse(t, nested(490, `{"type":"null"}`))
		if incompatible(mustCompare(t, old, next)) != 1 || incompatible(mustCompare(t, old, old)) != 0 {
			t.Error("wrong result")
		}
	})
	t.Run("10,000 levels", func(t *testing.T) {
		t.Parallel()
		if _, err := Parse(nested(10_000, "{}"), nil, nil); err == nil ||
			!strings.Contains(err.Error(), "nested deeper") {
			t.Errorf("got %v, want that it is nested deeper than allowed", err)
		}
	})
	t.Run("deep and wide", func(t *testing.T) {
		t.Parallel()
		wide := obj(list(30_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }), "")
		text := in2020(`{"not":` + strings.Repeat(`{"not":`, 900) + wide + strings.Repeat("}", 901))
		if _, err := Parse(text, nil, nil); err == nil || !strings.Contains(err.Error(), "subschemas") {
			t.Errorf("got %v, want that it has too many subschemas", err)
		}
	})
}

func TestRegularExpressionBombs(t *testing.T) {
	t.Parallel()
	bomb := mustParse(t,
		`{"type":"object","patternProperties":{"^(a+)+$":{"type":"string"}},"additionalProperties":false}`)
	victim := mustParse(t, obj(`"`+strings.Repeat("a", 60)+`b":{"type":"string"}`, ""))
	if _, err := Compare(victim, bomb, nil); !errors.Is(err, ErrTooComplex) {
		t.Errorf("got %v, want %v", err, ErrTooComplex)
	}
}
