package jsonschema

import "freshet/internal/registry/jsontree"

// family is a set of keywords that apply to one type of value.
type family uint8

const (
	stringFamily family = iota
	numberFamily
	objectFamily
	arrayFamily
)

// keywordSpan is a keyword and the drafts in which it belongs to its family.
type keywordSpan struct {
	name        string
	first, last draft
	// filled means that an empty object does not count: Confluent's parser for the modern
	// drafts does not distinguish it from a missing keyword.
	filled bool
}

var families = [...][]keywordSpan{
	stringFamily: {
		{name: "minLength", last: draft2020},
		{name: "maxLength", last: draft2020},
		{name: "pattern", last: draft2020},
		{name: "format", last: draft2020},
	},
	numberFamily: {
		{name: "minimum", last: draft2020},
		{name: "maximum", last: draft2020},
		{name: "exclusiveMinimum", last: draft2020},
		{name: "exclusiveMaximum", last: draft2020},
		{name: "multipleOf", last: draft2020},
	},
	objectFamily: {
		{name: "properties", last: draft7},
		{name: "properties", first: draft2019, last: draft2020, filled: true},
		{name: "required", last: draft2020},
		{name: "minProperties", last: draft2020},
		{name: "maxProperties", last: draft2020},
		{name: "patternProperties", last: draft7},
		{name: "patternProperties", first: draft2019, last: draft2020, filled: true},
		{name: "additionalProperties", last: draft2020},
		{name: "propertyNames", first: draft6, last: draft2020},
		{name: "dependencies", last: draft7},
		{name: "dependentRequired", first: draft2019, last: draft2020},
		{name: "dependentSchemas", first: draft2019, last: draft2020},
		{name: "unevaluatedProperties", first: draft2019, last: draft2020},
	},
	arrayFamily: {
		{name: "items", last: draft2020},
		{name: "additionalItems", last: draft2019},
		{name: "prefixItems", first: draft2020, last: draft2020},
		{name: "minItems", last: draft2020},
		{name: "maxItems", last: draft2020},
		{name: "uniqueItems", last: draft2020},
		{name: "contains", first: draft6, last: draft2020},
		{name: "unevaluatedItems", first: draft2019, last: draft2020},
	},
}

// has reports whether the schema uses a keyword of the family.
func (f *facets) has(fam family) bool {
	d := f.from.doc.draft
	for _, span := range families[fam] {
		if d < span.first || d > span.last {
			continue
		}
		if v := f.v.Get(span.name); v != nil && (!span.filled || v.Len() > 0) {
			return true
		}
	}
	return false
}

// family adds the facet of one family and marks its keywords as used.
func (f *facets) family(fam family) {
	f.used[fam] = true
	switch fam {
	case stringFamily:
		f.add(kindString, body{text: &stringBody{
			minLength: f.number("minLength"),
			maxLength: f.number("maxLength"),
			pattern:   f.ofKind("pattern", jsontree.String),
		}})
	case numberFamily:
		f.add(kindNumber, body{number: f.numberBody()})
	case objectFamily:
		f.add(kindObject, body{object: f.objectBody()})
	case arrayFamily:
		f.add(kindArray, body{array: f.arrayBody()})
	}
}

func (f *facets) number(keyword string) *jsontree.Value { return f.ofKind(keyword, jsontree.Number) }

// ofKind returns the value of a keyword if it is of the kind, or nil.
func (f *facets) ofKind(keyword string, kind jsontree.Kind) *jsontree.Value {
	if v := f.v.Get(keyword); v != nil && v.Kind == kind {
		return v
	}
	return nil
}

func (f *facets) flag(keyword string) bool { return f.ofKind(keyword, jsontree.True) != nil }

func (f *facets) numberBody() *numberBody {
	body := &numberBody{
		minimum:          f.number("minimum"),
		maximum:          f.number("maximum"),
		exclusiveMinimum: f.number("exclusiveMinimum"),
		exclusiveMaximum: f.number("exclusiveMaximum"),
		multipleOf:       f.number("multipleOf"),
	}
	if f.from.doc.draft == draft4 {
		// Draft 4 writes {"maximum": 5, "exclusiveMaximum": true}.
		if f.flag("exclusiveMinimum") {
			body.exclusiveMinimum = body.minimum
		}
		if f.flag("exclusiveMaximum") {
			body.exclusiveMaximum = body.maximum
		}
	}
	return body
}

// members calls visit for each member of a keyword whose value is an object.
func (f *facets) members(keyword string, visit func(name string, v *jsontree.Value)) {
	if v := f.ofKind(keyword, jsontree.Object); v != nil {
		for name, member := range v.Members() {
			visit(name, member)
		}
	}
}

func (f *facets) objectBody() *objectBody {
	d := f.from.doc.draft
	body := &objectBody{
		required:   map[string]bool{},
		properties: map[string]*node{},
		arrays:     map[string][]string{},
		schemas:    map[string]*node{},
		additional: f.rest("additionalProperties"),
		minimum:    f.number("minProperties"),
		maximum:    f.number("maxProperties"),
	}
	f.members("properties", func(name string, v *jsontree.Value) { body.properties[name] = f.child(v) })
	body.names = sortedKeys(body.properties)
	if list := f.v.Get("required"); list != nil {
		for _, item := range list.Elements() {
			body.required[item.Text] = true
		}
	}
	f.members("patternProperties", func(text string, v *jsontree.Value) {
		if p := f.from.doc.pattern(text); p != nil {
			body.patterns = append(body.patterns, patternProperty{p, f.child(v)})
		}
	})
	names := func(name string, v *jsontree.Value) {
		for _, item := range v.Elements() {
			body.arrays[name] = append(body.arrays[name], item.Text)
		}
	}
	if d.modern() {
		f.members("dependentRequired", names)
		f.members("dependentSchemas", func(name string, v *jsontree.Value) { body.schemas[name] = f.child(v) })
		body.unmatched = f.rest("unevaluatedProperties")
		return body
	}
	f.members("dependencies", func(name string, v *jsontree.Value) {
		if v.Kind == jsontree.Array {
			names(name, v)
		} else {
			body.schemas[name] = f.child(v)
		}
	})
	return body
}

func (f *facets) arrayBody() *arrayBody {
	d := f.from.doc.draft
	body := &arrayBody{
		minimum: f.number("minItems"),
		maximum: f.number("maxItems"),
		unique:  f.flag("uniqueItems"),
	}
	items := f.v.Get("items")
	tuple := items
	if d == draft2020 {
		tuple = f.v.Get("prefixItems")
	}
	if tuple != nil && tuple.Kind == jsontree.Array {
		for _, item := range tuple.Elements() {
			body.tuple = append(body.tuple, f.child(item))
		}
	}
	switch {
	case d != draft2020:
		body.additional = f.rest("additionalItems")
		if items != nil && items.Kind != jsontree.Array {
			body.all = f.child(items)
		}
	case items != nil && (items.IsBool() || len(body.tuple) > 0):
		// In 2020-12 items has the role of additionalItems if prefixItems exists; a
		// boolean only allows or forbids items.
		body.additional = f.rest("items")
	case items != nil && items.Kind == jsontree.Object:
		body.all = f.child(items)
	}
	if d.modern() {
		body.unmatched = f.rest("unevaluatedItems")
		if f.v.Get("contains") != nil {
			body.minContains = f.number("minContains")
			body.maxContains = f.number("maxContains")
			if body.minContains == nil {
				body.minContains = one
			}
		}
	}
	return body
}

// one is the default of minContains.
var one = &jsontree.Value{Kind: jsontree.Number, Text: "1"}

// rest reads a keyword whose value is a boolean or a schema for properties or items that are
// not named.
func (f *facets) rest(keyword string) rest {
	v := f.v.Get(keyword)
	switch {
	case v == nil:
		return rest{}
	case v.IsBool():
		return rest{forbidden: v.Kind == jsontree.False}
	}
	return rest{schema: f.child(v)}
}
