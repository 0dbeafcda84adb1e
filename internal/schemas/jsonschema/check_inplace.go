package jsonschema

import "strings"

// inPlace applies the keywords that apply other schemas to v itself. It returns
// the first keyword that fails, or "".
func (c *checker) inPlace(s site, v *value, seen *marks) string {
	if s.doc.draft.modern() {
		if keyword := c.references(s, v, seen); keyword != "" {
			return keyword
		}
	}
	for _, list := range [...]struct {
		keyword string
		applies func(site, *value, *value, *marks) bool
	}{{"allOf", c.allHold}, {"anyOf", c.anyHolds}, {"oneOf", c.oneHolds}} {
		schemas := s.value.get(list.keyword)
		if schemas != nil && schemas.kind == arrayValue && !list.applies(s, schemas, v, seen) {
			return list.keyword
		}
	}
	if not := s.value.get("not"); not != nil {
		// Evaluated apart from marks: what is seen under not does not count.
		var apart *marks
		if seen != nil {
			apart = newMarks(v)
		}
		if c.eval(s.sub(not), v, apart) {
			return "not"
		}
	}
	if keyword := c.conditional(s, v, seen); keyword != "" {
		return keyword
	}
	if v.kind == objectValue {
		return c.dependentSchemas(s, v, seen)
	}
	return ""
}

func (c *checker) allHold(s site, schemas, v *value, seen *marks) bool {
	for _, schema := range schemas.items {
		if !c.eval(s.sub(schema), v, seen) {
			return false
		}
	}
	return true
}

func (c *checker) anyHolds(s site, schemas, v *value, seen *marks) bool {
	matched := false
	for _, schema := range schemas.items {
		if c.eval(s.sub(schema), v, seen) {
			matched = true
			if seen == nil {
				return true
			}
		}
	}
	return matched
}

func (c *checker) oneHolds(s site, schemas, v *value, seen *marks) bool {
	matched := 0
	for _, schema := range schemas.items {
		if c.eval(s.sub(schema), v, seen) {
			matched++
		}
		if matched > 1 {
			return false
		}
	}
	return matched == 1
}

func (c *checker) conditional(s site, v *value, seen *marks) string {
	condition := s.value.get("if")
	if condition == nil || s.doc.draft < draft7 {
		return ""
	}
	keyword := "else"
	if c.eval(s.sub(condition), v, seen) {
		keyword = "then"
	}
	if branch := s.value.get(keyword); branch != nil && !c.eval(s.sub(branch), v, seen) {
		return keyword
	}
	return ""
}

func (c *checker) dependentSchemas(s site, v *value, seen *marks) string {
	keyword := "dependencies"
	if s.doc.draft.modern() {
		keyword = "dependentSchemas"
	}
	dependencies := s.value.get(keyword)
	if dependencies == nil || dependencies.kind != objectValue {
		return ""
	}
	for i, name := range dependencies.keys {
		schema := dependencies.items[i]
		if schema.kind != arrayValue && v.get(name) != nil && !c.eval(s.sub(schema), v, seen) {
			return keyword
		}
	}
	return ""
}

func (c *checker) references(s site, v *value, seen *marks) string {
	if ref, ok := s.value.str("$ref"); ok && !c.follow(s, ref, v, seen) {
		return "$ref"
	}
	if ref, ok := s.value.str("$dynamicRef"); ok && !c.followDynamic(s, ref, v, seen) {
		return "$dynamicRef"
	}
	if ref, ok := s.value.str("$recursiveRef"); ok && !c.followRecursive(s, ref, v, seen) {
		return "$recursiveRef"
	}
	return ""
}

// enter puts the resource that s belongs to on the dynamic scope, and returns
// what takes it off again.
func (c *checker) enter(s site) func() {
	length := len(c.scope)
	here := resource{s.doc, s.inner()}
	if length == 0 || c.scope[length-1] != here {
		c.scope = append(c.scope, here)
	}
	return func() { c.scope = c.scope[:length] }
}

// followDynamic resolves a $dynamicRef: if it leads to a $dynamicAnchor, the
// outermost resource on the way here that has one of that name takes its place.
func (c *checker) followDynamic(s site, ref string, v *value, seen *marks) bool {
	target, err := s.resolve(ref)
	_, anchor, _ := strings.Cut(ref, "#")
	if err != nil || target.meta != "" || anchor == "" {
		return c.follow(s, ref, v, seen)
	}
	if name, ok := target.value.str("$dynamicAnchor"); ok && name == anchor {
		for _, r := range c.scope {
			candidate, found := r.doc.anchors[r.base+"#"+anchor]
			if !found {
				continue
			}
			if name, ok := candidate.value.str("$dynamicAnchor"); ok && name == anchor {
				return c.eval(candidate, v, seen)
			}
		}
	}
	return c.eval(target, v, seen)
}

// followRecursive does the same for the $recursiveRef of 2019-09.
func (c *checker) followRecursive(s site, ref string, v *value, seen *marks) bool {
	target, err := s.resolve(ref)
	if err != nil || target.meta != "" || !recursiveAnchor(target.value) {
		return c.follow(s, ref, v, seen)
	}
	for _, r := range c.scope {
		if candidate, found := r.doc.ids[r.base]; found && recursiveAnchor(candidate.value) {
			return c.eval(candidate, v, seen)
		}
	}
	return c.eval(target, v, seen)
}

func recursiveAnchor(v *value) bool {
	anchor := v.get("$recursiveAnchor")
	return anchor != nil && anchor.kind == boolValue && anchor.truth
}
