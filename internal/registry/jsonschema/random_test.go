package jsonschema

import "math/rand/v2"

// generator creates random schemas from a small vocabulary, so that they have much in
// common.
type generator struct {
	*rand.Rand
	draft draft
}

func (g *generator) pick(options ...string) string { return options[g.IntN(len(options))] }

func (g *generator) schema(depth int) string {
	if depth == 0 || g.IntN(6) == 0 {
		leaf := g.pick(`{}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":["null","number"]}`,
			`{"enum":[1,"a",null]}`)
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
		keywords = append(keywords, func() string { return `"contains":` + sub() },
			func() string { return `"propertyNames":` + sub() })
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
