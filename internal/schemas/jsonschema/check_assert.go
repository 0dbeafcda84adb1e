package jsonschema

import (
	"sync"
	"unicode/utf8"

	metaschema "github.com/santhosh-tekuri/jsonschema/v6"
)

// violated applies the keywords that look at v alone, and returns the first
// that fails, or "".
func (c *checker) violated(s site, v *value) string {
	if t := s.value.get("type"); t != nil && !hasType(t, v) {
		return "type"
	}
	if e := s.value.get("enum"); e != nil && e.kind == arrayValue && missing([]*value{v}, e.items) {
		return "enum"
	}
	if k := s.value.get("const"); k != nil && s.doc.draft > draft4 && k.hash != v.hash {
		return "const"
	}
	switch v.kind {
	case stringValue:
		return c.stringViolated(s, v)
	case numberValue:
		return numberViolated(s, v)
	case arrayValue:
		return arrayViolated(s, v)
	case objectValue:
		return objectViolated(s, v)
	}
	return ""
}

func hasType(t, v *value) bool {
	if t.kind == arrayValue {
		for _, item := range t.items {
			if hasType(item, v) {
				return true
			}
		}
		return false
	}
	switch t.text {
	case "null":
		return v.kind == nullValue
	case "boolean":
		return v.kind == boolValue
	case "string":
		return v.kind == stringValue
	case "array":
		return v.kind == arrayValue
	case "object":
		return v.kind == objectValue
	case "number":
		return v.kind == numberValue
	case "integer":
		return v.kind == numberValue && parseDecimal(v.text).whole()
	}
	return false
}

// whole says whether d has no fraction.
func (d decimal) whole() bool {
	return d.digits == "" || d.exponent >= int64(len(d.digits))
}

func (c *checker) stringViolated(s site, v *value) string {
	length := -1
	for _, limit := range [...]struct {
		keyword string
		beyond  func(int, *value) bool
	}{{"minLength", countBelow}, {"maxLength", countAbove}} {
		if l := s.value.get(limit.keyword); l != nil {
			if length < 0 {
				length = utf8.RuneCountInString(v.text)
			}
			if limit.beyond(length, l) {
				return limit.keyword
			}
		}
	}
	if p, ok := s.value.str("pattern"); ok && !c.matches(s, p, v.text) {
		return "pattern"
	}
	if f, ok := s.value.str("format"); ok && !hasFormat(s.doc.draft, f, v.text) {
		return "format"
	}
	return ""
}

func numberViolated(s site, v *value) string {
	number := parseDecimal(v.text)
	compare := func(keyword string) (int, bool) {
		limit := s.value.get(keyword)
		if limit == nil || limit.kind != numberValue {
			return 0, false
		}
		return number.compare(parseDecimal(limit.text)), true
	}
	exclusive := func(keyword string) bool {
		flag := s.value.get(keyword)
		return flag != nil && flag.kind == boolValue && flag.truth
	}
	if order, ok := compare("minimum"); ok && (order < 0 || order == 0 && exclusive("exclusiveMinimum")) {
		return "minimum"
	}
	if order, ok := compare("maximum"); ok && (order > 0 || order == 0 && exclusive("exclusiveMaximum")) {
		return "maximum"
	}
	if order, ok := compare("exclusiveMinimum"); ok && order <= 0 {
		return "exclusiveMinimum"
	}
	if order, ok := compare("exclusiveMaximum"); ok && order >= 0 {
		return "exclusiveMaximum"
	}
	if m := s.value.get("multipleOf"); m != nil && m.kind == numberValue && !number.multipleOf(parseDecimal(m.text)) {
		return "multipleOf"
	}
	return ""
}

func arrayViolated(s site, v *value) string {
	if l := s.value.get("minItems"); l != nil && countBelow(len(v.items), l) {
		return "minItems"
	}
	if l := s.value.get("maxItems"); l != nil && countAbove(len(v.items), l) {
		return "maxItems"
	}
	if u := s.value.get("uniqueItems"); u != nil && u.kind == boolValue && u.truth && repeats(v.items) {
		return "uniqueItems"
	}
	return ""
}

func objectViolated(s site, v *value) string {
	if l := s.value.get("minProperties"); l != nil && countBelow(len(v.items), l) {
		return "minProperties"
	}
	if l := s.value.get("maxProperties"); l != nil && countAbove(len(v.items), l) {
		return "maxProperties"
	}
	if missingMember(s.value.get("required"), v) {
		return "required"
	}
	keyword := "dependencies"
	if s.doc.draft.modern() {
		keyword = "dependentRequired"
	}
	if dependencies := s.value.get(keyword); dependencies != nil && dependencies.kind == objectValue {
		for i, name := range dependencies.keys {
			if v.get(name) != nil && missingMember(dependencies.items[i], v) {
				return keyword
			}
		}
	}
	return ""
}

// missingMember says whether some name of an array of names is not in v.
func missingMember(names, v *value) bool {
	if names == nil || names.kind != arrayValue {
		return false
	}
	for _, name := range names.items {
		if name.kind == stringValue && v.get(name.text) == nil {
			return true
		}
	}
	return false
}

// formats are those that a draft asserts, and since when. From 2019-09 on a
// format is only an annotation.
var formats = map[string]draft{
	"date-time": draft4, "email": draft4, "hostname": draft4, "ipv4": draft4, "ipv6": draft4, "uri": draft4,
	"json-pointer": draft6, "uri-reference": draft6, "uri-template": draft6,
	"date": draft7, "time": draft7, "relative-json-pointer": draft7,
}

// formatSchemas are the library's checks of those formats.
var formatSchemas = sync.OnceValue(func() map[string]*metaschema.Schema {
	compiled := map[string]*metaschema.Schema{}
	for name := range formats {
		c := metaschema.NewCompiler()
		c.DefaultDraft(metaschema.Draft7)
		c.UseLoader(refusal{})
		if err := c.AddResource("mem:///"+name, map[string]any{"format": name}); err != nil {
			continue
		}
		if s, err := c.Compile("mem:///" + name); err == nil {
			compiled[name] = s
		}
	}
	return compiled
})

func hasFormat(d draft, format, text string) bool {
	since, asserted := formats[format]
	if format == "regex" {
		_, err := compilePattern(text)
		return d < draft7 || d.modern() || err == nil
	}
	if !asserted || d < since || d.modern() {
		return true
	}
	s, ok := formatSchemas()[format]
	return !ok || s.Validate(text) == nil
}

// evalMeta judges a value by a published metaschema.
func (c *checker) evalMeta(address string, v *value) bool {
	const cost = 1000 // the library does not count steps
	if !c.spend(cost + metaWork(v, 1)) {
		return false
	}
	meta, err := metaschemaAt(address)
	if err != nil {
		c.fail("compile %s: %v", address, err)
		return false
	}
	return meta.Validate(plain(v)) == nil
}

func metaschemaAt(address string) (*metaschema.Schema, error) {
	for d, info := range draftInfo {
		if address == info.url+"#" {
			return metaschemas[d]()
		}
	}
	compiler := metaschema.NewCompiler()
	compiler.UseLoader(refusal{})
	compiler.UseRegexpEngine(lenientRegexp)
	return compiler.Compile(address)
}
