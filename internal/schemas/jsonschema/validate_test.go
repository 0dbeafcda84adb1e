package jsonschema

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metaschema "github.com/santhosh-tekuri/jsonschema/v6"

	"freshet/internal/errs"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`true`, []string{`1`, `{}`, `null`}, nil},
		{`false`, nil, []string{`1`, `null`}},
		{`{}`, []string{`1`, `[]`}, nil},
		{`{"type":"integer"}`, []string{`1`, `1.0`, `1e3`, `-0`}, []string{`1.5`, `1e-1`, `"1"`, `null`, `true`}},
		{`{"type":["string","null"]}`, []string{`""`, `null`}, []string{`1`, `{}`}},
		{`{"enum":[1,"a",{"x":[null]}]}`, []string{`1.0`, `"a"`, `{"x":[null]}`}, []string{`2`, `{"x":[]}`}},
		{`{"const":{"a":1,"b":2}}`, []string{`{"b":2,"a":1}`}, []string{`{"a":1}`}},
		{`{"minLength":2,"maxLength":3}`, []string{`"ab"`, `"äöü"`, `"😀😀"`, `1`}, []string{`"a"`, `"abcd"`}},
		{`{"pattern":"^a+$"}`, []string{`"aa"`, `5`}, []string{`"ab"`, `""`}},
		{`{"minimum":1,"exclusiveMaximum":3}`, []string{`1`, `2.999`, `"x"`}, []string{`0.99`, `3`, `3.0`}},
		{`{"multipleOf":0.01}`, []string{`19.99`, `0`, `1e2`}, []string{`0.001`}},
		{inDraft(draft4, `{"minimum":1,"exclusiveMinimum":true}`), []string{`2`}, []string{`1`}},
		{`{"items":{"type":"null"},"minItems":1,"maxItems":2}`, []string{`[null]`, `{}`}, []string{`[]`, `[1]`, `[null,null,null]`}},
		{`{"items":[{"type":"null"}],"additionalItems":false}`, []string{`[]`, `[null]`}, []string{`[null,1]`, `[1]`}},
		{`{"additionalItems":false}`, []string{`[1,2]`}, nil},
		{`{"uniqueItems":true}`, []string{`[1,"1",[1],{"a":1}]`, `[]`}, []string{`[1,1.0]`, `[{"a":1,"b":2},{"b":2,"a":1}]`}},
		{`{"contains":{"type":"null"}}`, []string{`[1,null]`, `1`}, []string{`[]`, `[1]`}},
		{obj(`"a":{"type":"string"}`, `,"required":["a"],"additionalProperties":false`), []string{`{"a":""}`}, []string{`{}`, `{"a":1}`, `{"a":"","b":1}`}},
		{`{"patternProperties":{"^x":{"type":"null"}},"additionalProperties":{"type":"string"}}`, []string{`{"xa":null,"b":""}`}, []string{`{"xa":""}`, `{"b":null}`}},
		{`{"propertyNames":{"maxLength":1}}`, []string{`{"a":1}`, `[]`}, []string{`{"ab":1}`}},
		{`{"minProperties":1,"maxProperties":1}`, []string{`{"a":1}`}, []string{`{}`, `{"a":1,"b":2}`}},
		{`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, []string{`{}`, `{"a":1,"b":1}`, `{"c":1,"d":1}`}, []string{`{"a":1}`, `{"c":1}`}},
		{`{"allOf":[{"minimum":1},{"maximum":2}]}`, []string{`1`, `2`}, []string{`0`, `3`}},
		{`{"anyOf":[{"type":"null"},{"minimum":2}]}`, []string{`null`, `2`, `""`}, []string{`1`}},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, []string{`1`, `2.5`}, []string{`3`, `1.5`}},
		{`{"not":{"type":"null"}}`, []string{`1`}, []string{`null`}},
		{`{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"null"}}`, []string{`"a"`, `null`}, []string{`""`, `1`}},
		{inDraft(draft6, `{"if":true,"then":false}`), []string{`1`}, nil},
		{`{"format":"date-time"}`, []string{`"2024-02-29T12:00:00Z"`, `5`}, []string{`"2024-02-30T12:00:00Z"`, `"x"`}},
		{inDraft(draft4, `{"format":"date"}`), []string{`"x"`}, nil},
		{`{"format":"regex"}`, []string{`"a+"`}, []string{`"("`}},
		{`{"format":"int64"}`, []string{`"x"`}, nil},
		{in2020(`{"format":"date-time"}`), []string{`"x"`}, nil},
		{`{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`, []string{`{"a":{"a":{}}}`}, []string{`{"a":{"b":{}}}`}},
		{`{"$ref":"#/definitions/a","type":"null","definitions":{"a":{"type":"string"}}}`, []string{`""`}, []string{`null`}},
		{in2020(`{"$ref":"#/$defs/a","minLength":1,"$defs":{"a":{"type":"string"}}}`), []string{`"x"`}, []string{`""`, `1`}},
		{`{"$ref":"http://json-schema.org/draft-07/schema#"}`, []string{`{"type":"string"}`, `true`}, []string{`{"type":"x"}`, `1`}},
		{in2020(`{"prefixItems":[{"type":"null"}],"items":{"type":"string"}}`), []string{`[null,"a"]`, `[]`}, []string{`["a"]`, `[null,1]`}},
		{in2020(`{"contains":{"type":"null"},"minContains":2,"maxContains":3}`), []string{`[null,1,null]`}, []string{`[null]`, `[null,null,null,null]`}},
		{in2020(`{"contains":{"type":"null"},"minContains":0}`), []string{`[]`}, nil},
		{in2020(`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`), []string{`{"a":1,"b":1}`}, []string{`{"a":1}`, `{"c":1}`}},
		{in2020(`{"properties":{"a":true},"unevaluatedProperties":false}`), []string{`{"a":1}`, `1`}, []string{`{"b":1}`}},
		{
			in2020(`{"allOf":[{"properties":{"a":true}}],"anyOf":[{"properties":{"b":true},"required":["b"]},true],"unevaluatedProperties":false}`),
			[]string{`{"a":1}`, `{"a":1,"b":2}`},
			[]string{`{"c":1}`},
		},
		{in2020(`{"if":{"properties":{"a":true},"required":["a"]},"then":{"properties":{"b":true}},"unevaluatedProperties":false}`), []string{`{"a":1,"b":1}`, `{}`}, []string{`{"b":1}`}},
		{in2020(`{"not":{"properties":{"a":{"type":"null"}},"required":["a"]},"unevaluatedProperties":{"type":"string"}}`), []string{`{"a":""}`}, []string{`{"a":1}`, `{"a":null}`}},
		{in2020(`{"prefixItems":[true],"unevaluatedItems":{"type":"null"}}`), []string{`[1,null]`}, []string{`[1,2]`}},
		{in2020(`{"contains":{"type":"null"},"unevaluatedItems":false}`), []string{`[null]`}, []string{`[null,1]`}},
		{inDraft(draft2019, `{"contains":{"type":"null"},"unevaluatedItems":false}`), nil, []string{`[null]`}},
		{inDraft(draft2019, `{"items":[{"type":"null"}],"additionalItems":{"type":"string"}}`), []string{`[null,"a"]`}, []string{`[null,1]`}},
		{
			in2020(`{"$id":"http://e/strict","$ref":"tree","$dynamicAnchor":"node","unevaluatedProperties":false,"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","properties":{"v":true,"c":{"items":{"$dynamicRef":"#node"}}}}}}`),
			[]string{`{"v":1,"c":[{"v":2}]}`},
			[]string{`{"c":[{"x":1}]}`, `{"x":1}`},
		},
		{
			inDraft(draft2019, `{"$id":"http://e/strict","$ref":"tree","$recursiveAnchor":true,"unevaluatedProperties":false,"$defs":{"tree":{"$id":"tree","$recursiveAnchor":true,"properties":{"v":true,"c":{"items":{"$recursiveRef":"#"}}}}}}`),
			[]string{`{"v":1,"c":[{"v":2}]}`},
			[]string{`{"c":[{"x":1}]}`, `{"x":1}`},
		},
	} {
		s := mustParse(t, c.schema)
		for _, document := range c.yes {
			if err := s.Validate([]byte(document)); err != nil {
				t.Errorf("%s\nrefuses %s: %v", c.schema, document, err)
			}
		}
		for _, document := range c.no {
			err := s.Validate([]byte(document))
			if !errors.Is(err, ErrMismatch) || errs.KindOf(err) != errs.Invalid {
				t.Errorf("%s\naccepts %s: %v", c.schema, document, err)
			}
		}
	}
}

func TestValidateExplains(t *testing.T) {
	t.Parallel()
	s := mustParse(t, obj(`"name":{"$ref":"#/definitions/n"},"list":{"items":{"allOf":[{"type":"integer"},{"minimum":3}]}},"u":{"oneOf":[{"type":"null"}]},"f":false`,
		`,"required":["name"],"propertyNames":{"maxLength":5},"definitions":{"n":{"type":"string","maxLength":3}}`))
	for document, want := range map[string]string{
		`{"name":"abcd"}`:            `at '#/name': violates "maxLength": 3`,
		`{"name":1}`:                 `at '#/name': violates "type": "string"`,
		`{}`:                         `at '#': violates "required": ["name"]`,
		`{"name":"a","list":[5,1]}`:  `at '#/list/1': violates "minimum": 3`,
		`{"name":"a","u":1}`:         `at '#/u': violates "oneOf"`,
		`{"name":"a","f":1}`:         `at '#/f': nothing is allowed here`,
		`{"name":"a","toolong":1}`:   `at '#': violates "propertyNames"`,
		`{"name":"a",}`:              `invalid JSON: expected a member name`,
		`{"name":"a"} x`:             `after the JSON value`,
		strings.Repeat("[", 2000):    `nested deeper than 1000`,
		strings.Repeat(" ", maxText): `unexpected end of JSON`,
	} {
		err := s.Validate([]byte(document))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", clip(document, 100), err, want)
		}
	}
}

// Schemas that would take forever if every way through them was tried.
func TestValidateIsBounded(t *testing.T) {
	t.Parallel()
	forks := func(n int) string {
		return `{"$ref":"#/definitions/a0","definitions":{` + list(n, func(i int) string {
			return fmt.Sprintf(`"a%d":{"anyOf":[{"$ref":"#/definitions/a%d"},{"allOf":[{"$ref":"#/definitions/a%d"}]}]}`, i, i+1, i+1)
		}) + fmt.Sprintf(`,"a%d":{"type":"null"}}}`, n)
	}
	within(t, "forks", func() {
		if err := mustParse(t, forks(60)).Validate([]byte(`1`)); !errors.Is(err, ErrMismatch) {
			t.Errorf("got %v", err)
		}
	})
	for name, text := range map[string]string{
		"a loop":               `{"$ref":"#"}`,
		"a loop in allOf":      `{"allOf":[{"$ref":"#"}]}`,
		"forks with marks":     strings.Replace(in2020(forks(60)), `"definitions"`, `"unevaluatedProperties":false,"definitions"`, 1),
		"a dynamic loop":       in2020(`{"$dynamicAnchor":"n","allOf":[{"$dynamicRef":"#n"}]}`),
		"dynamic forks":        in2020(`{"$dynamicAnchor":"n","anyOf":[{"items":{"$dynamicRef":"#n"}},{"items":{"$dynamicRef":"#n"}}],"type":"array"}`),
		"metaschemas en masse": `{"items":{"allOf":[` + list(300, func(int) string { return `{"$ref":"http://json-schema.org/draft-07/schema#"}` }) + `]}}`,
	} {
		within(t, name, func() {
			document := strings.Repeat("[", 60) + `1` + strings.Repeat("]", 60)
			if name == "metaschemas en masse" {
				document = `[` + list(100, func(int) string { return `{}` }) + `]`
			}
			if name == "forks with marks" {
				document = `{}`
			}
			if err := mustParse(t, text).Validate([]byte(document)); !errors.Is(err, ErrTooComplex) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}

// The library as a second opinion, on random schemas and documents.
func TestValidateAgainstLibrary(t *testing.T) {
	t.Parallel()
	rounds := 1500
	if large() {
		rounds = 100_000
	}
	agreed := map[bool]int{}
	for i := range rounds {
		g := &generator{Rand: rand.New(rand.NewPCG(7, uint64(i)))}
		d := []draft{draft4, draft6, draft7, draft2019, draft2020}[g.IntN(5)]
		g.draft = d
		text := inDraft(d, `{"allOf":[`+g.schema(3)+`]}`)
		s, err := Parse(text, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		c := metaschema.NewCompiler()
		c.UseLoader(refusal{})
		if err := c.AddResource("mem:///s", plain(s.doc.root)); err != nil {
			t.Fatal(err)
		}
		library, err := c.Compile("mem:///s")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for range 5 {
			document := g.document(3)
			v, err := parseValue(document)
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := s.Validate([]byte(document)) == nil, library.Validate(plain(v)) == nil
			if ours != theirs {
				t.Fatalf("schema %s\ndocument %s\nours %v, the library's %v", text, document, ours, theirs)
			}
			agreed[ours]++
		}
	}
	if agreed[true] < rounds/2 || agreed[false] < rounds/2 {
		t.Errorf("the generator is lopsided: %v", agreed)
	}
}

// generator makes random schemas and documents over a small vocabulary, so
// that they have something to do with each other.
type generator struct {
	*rand.Rand
	draft draft
}

func (g *generator) pick(options ...string) string { return options[g.IntN(len(options))] }

func (g *generator) document(depth int) string {
	switch n := g.IntN(9); {
	case n < 2 || (depth == 0 && n > 5):
		return g.pick("0", "1", "2", "3", "1.5", "-1")
	case n < 4:
		return g.pick(`""`, `"a"`, `"b"`, `"ab"`, `"abc"`)
	case n < 6:
		return g.pick("null", "true", "false")
	case n == 6:
		return "[" + list(g.IntN(4), func(int) string { return g.document(depth - 1) }) + "]"
	}
	return "{" + list(g.IntN(4), func(i int) string { return fmt.Sprintf("%q:%s", "abcd"[i:i+1], g.document(depth-1)) }) + "}"
}

func (g *generator) schema(depth int) string {
	if depth == 0 || g.IntN(6) == 0 {
		leaf := g.pick(`{}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":["null","number"]}`, `{"enum":[1,"a",null]}`)
		if g.draft > draft4 && g.IntN(4) == 0 {
			leaf = g.pick("true", "false", `{"const":"a"}`)
		}
		return leaf
	}
	sub := func() string { return g.schema(depth - 1) }
	subs := func() string { return "[" + list(1+g.IntN(3), func(int) string { return sub() }) + "]" }
	keywords := []func() string{
		func() string { return `"type":` + g.pick(`"object"`, `"array"`, `["string","integer"]`, `"number"`) },
		func() string { return `"minimum":` + g.pick("0", "1", "2.5") },
		func() string { return `"maximum":` + g.pick("0", "1", "2.5") },
		func() string { return `"multipleOf":` + g.pick("1", "0.5", "2") },
		func() string { return `"maxLength":` + g.pick("0", "1", "2") },
		func() string { return `"pattern":` + g.pick(`"a"`, `"^b"`, `"c$"`) },
		func() string { return `"minItems":` + g.pick("0", "1", "2") },
		func() string { return `"uniqueItems":true` },
		func() string { return `"items":` + sub() },
		func() string { return `"properties":{"a":` + sub() + `,"b":` + sub() + `}` },
		func() string { return `"patternProperties":{"[bc]":` + sub() + `}` },
		func() string { return `"additionalProperties":` + sub() },
		func() string { return `"required":` + g.pick(`["a"]`, `["a","b"]`) },
		func() string { return `"maxProperties":` + g.pick("0", "1", "2") },
		func() string { return `"allOf":` + subs() },
		func() string { return `"anyOf":` + subs() },
		func() string { return `"oneOf":` + subs() },
		func() string { return `"not":` + sub() },
		func() string { return `"default":1,"title":"t"` },
	}
	if g.draft > draft4 {
		keywords = append(keywords, func() string { return `"contains":` + sub() }, func() string { return `"propertyNames":` + sub() })
	}
	if g.draft >= draft7 {
		keywords = append(keywords, func() string { return `"if":` + sub() + `,"then":` + sub() + `,"else":` + sub() })
	}
	if g.draft < draft2019 {
		keywords = append(keywords, func() string { return `"dependencies":{"a":["b"],"b":` + sub() + `}` })
	} else {
		keywords = append(keywords,
			func() string { return `"dependentSchemas":{"a":` + sub() + `}` },
			func() string { return `"unevaluatedProperties":` + sub() },
			func() string { return `"unevaluatedItems":` + sub() },
			func() string { return `"minContains":` + g.pick("0", "1", "2") })
	}
	if g.draft == draft2020 {
		keywords = append(keywords, func() string { return `"prefixItems":` + subs() })
	}
	g.Shuffle(len(keywords), func(i, k int) { keywords[i], keywords[k] = keywords[k], keywords[i] })
	return "{" + list(1+g.IntN(4), func(i int) string { return keywords[i]() }) + "}"
}
