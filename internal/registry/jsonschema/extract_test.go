package jsonschema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"freshet/internal/registry/jsontree"
)

// show prints a model, so that tables can contain the expected facets of a schema. A node
// that contains itself is abbreviated as "...".
func show(n *node) string { return (&printer{}).node(n) }

type printer struct{ above []*node }

func (p *printer) node(n *node) string {
	if n == nil {
		return "-"
	}
	if slices.Contains(p.above, n) {
		return "..."
	}
	p.above = append(p.above, n)
	defer func() { p.above = p.above[:len(p.above)-1] }()
	switch n.kind {
	case kindString:
		return "string" + attributes(attribute{"min", n.text.minLength}, attribute{"max", n.text.maxLength},
			attribute{"pattern", n.text.pattern})
	case kindNumber:
		name := "number"
		if n.number.integer {
			name = "integer"
		}
		return name + attributes(attribute{"min", n.number.minimum}, attribute{"max", n.number.maximum},
			attribute{"xmin", n.number.exclusiveMinimum}, attribute{"xmax", n.number.exclusiveMaximum},
			attribute{"mult", n.number.multipleOf})
	case kindObject:
		return p.object(n.object)
	case kindArray:
		return p.array(n.array)
	case kindCombined:
		return n.combined.criterion.String() + "(" + p.list(n.combined.branches) + ")"
	case kindRef:
		return "ref " + p.node(n.ref.end)
	case kindEnum:
		return fmt.Sprintf("enum%d", len(n.other.values))
	case kindConst:
		return "const " + emit(n.other.values[0].value)
	case kindNot:
		return "not(" + p.node(n.not) + ")"
	case kindMeta:
		return "meta " + n.other.address
	}
	return map[kind]string{
		kindEmpty: "empty", kindFalse: "false", kindBoolean: "boolean", kindNull: "null",
		kindConditional: "conditional",
	}[n.kind]
}

func (p *printer) list(nodes []*node) string {
	var parts []string
	for _, n := range nodes {
		parts = append(parts, p.node(n))
	}
	return strings.Join(parts, ",")
}

func (p *printer) object(o *objectBody) string {
	var parts []string
	for _, name := range o.names {
		mark := ""
		if o.required[name] {
			mark = "!"
		}
		parts = append(parts, name+mark+":"+p.node(o.properties[name]))
	}
	for _, pattern := range o.patterns {
		parts = append(parts, "/"+pattern.pattern.re.String()+"/:"+p.node(pattern.node))
	}
	for _, name := range sortedKeys(o.arrays) {
		parts = append(parts, name+"=>"+strings.Join(o.arrays[name], "+"))
	}
	for _, name := range sortedKeys(o.schemas) {
		parts = append(parts, name+"=>"+p.node(o.schemas[name]))
	}
	parts = append(parts, p.rest("more", o.additional)...)
	parts = append(parts, p.rest("unevaluated", o.unmatched)...)
	return "object{" + strings.Join(parts, ",") + "}" + attributes(attribute{"min", o.minimum},
		attribute{"max", o.maximum})
}

func (p *printer) array(a *arrayBody) string {
	var parts []string
	if a.all != nil {
		parts = append(parts, "all:"+p.node(a.all))
	}
	for _, n := range a.tuple {
		parts = append(parts, p.node(n))
	}
	parts = append(parts, p.rest("more", a.additional)...)
	parts = append(parts, p.rest("unevaluated", a.unmatched)...)
	if a.unique {
		parts = append(parts, "unique")
	}
	return "array[" + strings.Join(parts, ",") + "]" +
		attributes(attribute{"min", a.minimum}, attribute{"max", a.maximum}, attribute{"minC", a.minContains},
			attribute{"maxC", a.maxContains})
}

func (p *printer) rest(name string, r rest) []string {
	switch {
	case r.forbidden:
		return []string{name + ":false"}
	case r.schema != nil:
		return []string{name + ":" + p.node(r.schema)}
	}
	return nil
}

type attribute struct {
	name  string
	value *jsontree.Value
}

func attributes(list ...attribute) string {
	var b strings.Builder
	for _, a := range list {
		if a.value != nil {
			b.WriteString(" " + a.name + "=" + a.value.Text)
		}
	}
	return b.String()
}

func TestModel(t *testing.T) {
	t.Parallel()
	const d4, d6, d7, d19, d20 = draft4, draft6, draft7, draft2019, draft2020
	for _, c := range []struct {
		draft      draft
		text, want string
	}{
		{d7, `{}`, "empty"},
		{d7, `{"title":"t","definitions":{"a":{}},"x":1}`, "empty"},
		{d7, `{"not":true}`, "not(empty)"},
		{d7, `{"not":false}`, "not(false)"},

		// A type with keywords of its own family and of another.
		{d7, `{"type":"string","minLength":1,"pattern":"a"}`, "string min=1 pattern=a"},
		{d7, `{"type":"integer","minimum":1,"multipleOf":2}`, "integer min=1 mult=2"},
		{d7, `{"type":"string","minimum":1}`, "allOf(string,number min=1)"},
		{
			d7, `{"type":"object","minLength":1,"minimum":1,"items":{}}`,
			"allOf(object{},array[all:empty],number min=1,string min=1)",
		},
		{d7, `{"type":"integer","format":"int64"}`, "allOf(integer,string)"},
		{d7, `{"type":"boolean","enum":[true]}`, "allOf(enum1,boolean)"},
		{d7, `{"type":"null"}`, "null"},

		// No type at all.
		{d7, `{"format":"date"}`, "string"},
		{d7, `{"exclusiveMinimum":0}`, "number xmin=0"},
		{d7, `{"required":["a"]}`, "object{}"},
		{d7, `{"properties":{}}`, "object{}"},
		{d7, `{"minItems":1}`, "array[] min=1"},
		{
			d7, `{"maxLength":1,"maxItems":2,"maximum":3,"maxProperties":4}`,
			"allOf(array[] max=2,object{} max=4,number max=3,string max=1)",
		},
		{d7, `{"propertyNames":{"minLength":1}}`, "object{}"},
		{d7, `{"contains":{}}`, "array[]"},
		{d7, `{"then":{}}`, "conditional"},
		{d7, `{"type":"string","if":{}}`, "allOf(string,conditional)"},

		// Lists of types.
		{d7, `{"type":["string","null"]}`, "anyOf(string,null)"},
		{d7, `{"type":["string"],"maxLength":3}`, "anyOf(string max=3)"},
		{d7, `{"type":["string","integer"],"maxLength":3,"minimum":1}`, "anyOf(string max=3,integer min=1)"},
		{d7, `{"type":["string","null"],"minimum":1}`, "allOf(anyOf(string,null),number min=1)"},
		{
			d7, `{"type":["object","array"],"items":{"type":"null"},"properties":{"a":{}}}`,
			"anyOf(object{a:empty},array[all:null])",
		},

		// Combinations.
		{d7, `{"oneOf":[{"type":"string"}]}`, "oneOf(string)"},
		{d7, `{"oneOf":[{"type":"string"}],"type":"object"}`, "allOf(oneOf(string),object{})"},
		{d7, `{"allOf":[true],"anyOf":[true],"oneOf":[true]}`, "allOf(allOf(empty),anyOf(empty),oneOf(empty))"},
		{d7, `{"enum":[1,2],"const":1}`, "allOf(enum2,const 1)"},
		{d7, `{"const":null}`, "const null"},

		// Objects and arrays.
		{
			d7,
			`{"type":"object","properties":{"b":{},"a":false},"required":["a"],"patternProperties":{"^x":{"type":` +
				`"null"}},"additionalProperties":{"type":"string"}}`,
			"object{a!:false,b:empty,/^x/:null,more:string}",
		},
		{d7, `{"additionalProperties":false,"minProperties":1}`, "object{more:false} min=1"},
		{d7, `{"additionalProperties":true}`, "object{}"},
		{d7, `{"additionalProperties":{}}`, "object{more:empty}"},
		{d7, `{"dependencies":{"a":["b","c"],"d":{"type":"object"},"e":false}}`, "object{a=>b+c,d=>object{},e=>false}"},
		{
			d7, `{"items":[{"type":"null"},true],"additionalItems":false,"uniqueItems":true}`,
			"array[null,empty,more:false,unique]",
		},
		{d7, `{"items":false}`, "array[all:false]"},

		// Draft 4.
		{d4, `{"const":1}`, "empty"},
		{d4, `{"contains":{}}`, "empty"},
		{d4, `{"propertyNames":{}}`, "empty"},
		{d4, `{"if":{}}`, "empty"},
		{d4, `{"type":"number","maximum":5,"exclusiveMaximum":true}`, "number max=5 xmax=5"},
		{d4, `{"type":"number","minimum":5,"exclusiveMinimum":false}`, "number min=5"},
		// Draft 6 has const and contains, but no conditions.
		{d6, `{"const":1}`, "const 1"},
		{d6, `{"contains":{}}`, "array[]"},
		{d6, `{"if":{}}`, "empty"},

		// 2019-09.
		{d19, `{"items":[{"type":"null"}],"additionalItems":{"type":"string"}}`, "array[null,more:string]"},
		{d19, `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{}}}`, "object{a=>b,c=>empty}"},
		{d19, `{"dependencies":{"a":["b"]}}`, "empty"},
		{d19, `{"prefixItems":[{}]}`, "empty"},
		{d19, `{"then":{}}`, "empty"},
		// 2020-12.
		{d20, `{"prefixItems":[{"type":"null"}],"items":{"type":"string"}}`, "array[null,more:string]"},
		{d20, `{"prefixItems":[{"type":"null"}],"items":false}`, "array[null,more:false]"},
		{d20, `{"items":{"type":"string"}}`, "array[all:string]"},
		{d20, `{"items":false}`, "array[more:false]"},
		{d20, `{"items":true}`, "array[]"},
		{d20, `{"additionalItems":false}`, "empty"},
		{d20, `{"properties":{}}`, "empty"},
		{d20, `{"patternProperties":{}}`, "empty"},
		{d20, `{"properties":{},"type":"object"}`, "object{}"},
		{d20, `{"contains":{}}`, "array[] minC=1"},
		{d20, `{"contains":{},"minContains":0,"maxContains":3}`, "array[] minC=0 maxC=3"},
		{d20, `{"minContains":2}`, "empty"},
		{
			d20, `{"unevaluatedProperties":false,"unevaluatedItems":{"type":"null"}}`,
			"allOf(array[unevaluated:null],object{unevaluated:false})",
		},
		{
			d20, `{"type":["array","null"],"items":{"type":"string"},"required":[]}`,
			"allOf(anyOf(array[all:string],null),object{})",
		},

		// References.
		{d7, `{"$ref":"#/definitions/a","type":"null","definitions":{"a":{"type":"string"}}}`, "ref string"},
		{d20, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}},"title":"t"}`, "ref string"},
		{d20, `{"$ref":"#/$defs/a","type":"object","$defs":{"a":{"type":"string"}}}`, "allOf(ref string,object{})"},
		{d7, `{"properties":{"n":{"$ref":"#"}}}`, "object{n:ref ...}"},
		{d19, `{"properties":{"n":{"$recursiveRef":"#"}}}`, "object{n:ref ...}"},
		{d20, `{"properties":{"n":{"$dynamicRef":"#x"}},"$dynamicAnchor":"x"}`, "object{n:ref ...}"},
		{
			d7, `{"items":{"$ref":"http://json-schema.org/draft-07/schema#"}}`,
			"array[all:ref meta http://json-schema.org/draft-07/schema#]",
		},
	} {
		t.Run(c.draft.String()+" "+c.text, func(t *testing.T) {
			t.Parallel()
			if got := show(mustParse(t, inDraft(c.draft, c.text)).root); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDraftOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]draft{
		"http://json-schema.org/draft-04/schema#":       draft4,
		"http://json-schema.org/draft-04/schema":        draft4,
		"https://json-schema.org/draft-06/schema#":      draft6,
		"http://json-schema.org/draft-07/schema#":       draft7,
		"https://json-schema.org/draft/2019-09/schema":  draft2019,
		"http://json-schema.org/draft/2020-12/schema#":  draft2020,
		"http://json-schema.org/draft-07/hyper-schema#": draft7,
		"http://json-schema.org/schema#":                draft7,
		"http://json-schema.org/draft-03/schema#":       draft7,
		"http://example.org/draft-04/schema#":           draft7,
		"":                                              draft7,
	} {
		v, err := parseValue(`{"$schema":"` + url + `"}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := draftOf(v); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}
