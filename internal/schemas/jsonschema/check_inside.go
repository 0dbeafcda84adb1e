package jsonschema

import "strconv"

// fault is a place below a value where a schema does not hold.
type fault struct {
	keyword string
	token   string // of the member or item; "" if it is the value itself
	schema  site
	value   *value
}

// inside applies the keywords that apply schemas to the members or items of v.
// It returns the first that fails, or nil.
func (c *checker) inside(s site, v *value, seen *marks) *fault {
	switch v.kind {
	case objectValue:
		return c.insideObject(s, v, seen)
	case arrayValue:
		return c.insideArray(s, v, seen)
	}
	return nil
}

func (c *checker) insideObject(s site, v *value, seen *marks) *fault {
	properties := s.value.get("properties")
	patterns := s.value.get("patternProperties")
	additional := s.value.get("additionalProperties")
	for i, name := range v.keys {
		named := false
		if schema := properties.get(name); schema != nil {
			named = true
			if !c.eval(s.sub(schema), v.items[i], nil) {
				return &fault{"properties", name, s.sub(schema), v.items[i]}
			}
		}
		if patterns != nil && patterns.kind == objectValue {
			for k, text := range patterns.keys {
				if !c.matches(s, text, name) {
					continue
				}
				named = true
				if schema := s.sub(patterns.items[k]); !c.eval(schema, v.items[i], nil) {
					return &fault{"patternProperties", name, schema, v.items[i]}
				}
			}
		}
		if !named && additional != nil {
			named = true
			if schema := s.sub(additional); !c.eval(schema, v.items[i], nil) {
				return &fault{"additionalProperties", name, schema, v.items[i]}
			}
		}
		if named {
			seen.set(i)
		}
	}
	return c.propertyNames(s, v)
}

func (c *checker) propertyNames(s site, v *value) *fault {
	names := s.value.get("propertyNames")
	if names == nil || s.doc.draft < draft6 {
		return nil
	}
	for _, name := range v.keys {
		text := &value{kind: stringValue, text: name, hash: hashText('s', name)}
		if !c.eval(s.sub(names), text, nil) {
			return &fault{keyword: "propertyNames", token: name}
		}
	}
	return nil
}

func (c *checker) insideArray(s site, v *value, seen *marks) *fault {
	prefix, rest, restKeyword := s.value.get("items"), s.value.get("additionalItems"), "additionalItems"
	switch {
	case s.doc.draft == draft2020:
		prefix, rest, restKeyword = s.value.get("prefixItems"), s.value.get("items"), "items"
	case prefix == nil:
		rest = nil // additionalItems means nothing without items
	case prefix.kind != arrayValue:
		prefix, rest, restKeyword = nil, prefix, "items"
	}
	for i, item := range v.items {
		schema, keyword := rest, restKeyword
		if prefix != nil && prefix.kind == arrayValue && i < len(prefix.items) {
			schema, keyword = prefix.items[i], "items"
		}
		if schema == nil {
			continue
		}
		seen.set(i)
		if !c.eval(s.sub(schema), item, nil) {
			return &fault{keyword, strconv.Itoa(i), s.sub(schema), item}
		}
	}
	return c.contains(s, v, seen)
}

func (c *checker) contains(s site, v *value, seen *marks) *fault {
	schema := s.value.get("contains")
	if schema == nil || s.doc.draft < draft6 {
		return nil
	}
	matched := 0
	for i, item := range v.items {
		if c.eval(s.sub(schema), item, nil) {
			matched++
			if s.doc.draft == draft2020 {
				seen.set(i)
			}
		}
	}
	least, most := one, (*value)(nil)
	if s.doc.draft.modern() {
		if n := s.value.get("minContains"); n != nil {
			least = n
		}
		most = s.value.get("maxContains")
	}
	if countBelow(matched, least) {
		return &fault{keyword: "contains"}
	}
	if most != nil && countAbove(matched, most) {
		return &fault{keyword: "maxContains"}
	}
	return nil
}

// unevaluated applies what is left over to what nothing else has looked at.
func (c *checker) unevaluated(s site, keyword string, v *value, seen *marks) *fault {
	schema := s.sub(s.value.get(keyword))
	for i, item := range v.items {
		if seen.seen[i] {
			continue
		}
		if !c.eval(schema, item, nil) {
			token := strconv.Itoa(i)
			if v.kind == objectValue {
				token = v.keys[i]
			}
			return &fault{keyword, token, schema, item}
		}
		seen.set(i)
	}
	return nil
}

func countBelow(n int, limit *value) bool {
	return limit.kind == numberValue && parseDecimal(strconv.Itoa(n)).compare(parseDecimal(limit.text)) < 0
}

func countAbove(n int, limit *value) bool {
	return limit.kind == numberValue && parseDecimal(strconv.Itoa(n)).compare(parseDecimal(limit.text)) > 0
}
