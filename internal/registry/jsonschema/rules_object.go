package jsonschema

import "slices"

func (p *pass) objects(old, next *objectBody) {
	p.required(old, next)
	p.properties(old, next)
	p.dependencies(old, next)
	p.rests(additionalProperties, old.additional, next.additional, "additionalProperties")
	p.rests(unevaluatedProperties, old.unmatched, next.unmatched, "unevaluatedProperties")
	p.limit(maxProperties, old.maximum, next.maximum, "maxProperties")
	p.limit(minProperties, old.minimum, next.minimum, "minProperties")
}

// required compares only properties of both schemas. For the others, required is part of the
// rules for added and removed properties.
func (p *pass) required(old, next *objectBody) {
	for _, name := range old.names {
		property, common := next.properties[name]
		if !common || old.required[name] == next.required[name] {
			continue
		}
		below := member("required", name)
		switch {
		case old.required[name]:
			p.note("REQUIRED_ATTRIBUTE_REMOVED", below)
		case property.hasDefault():
			p.note("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", below)
		default:
			p.note("REQUIRED_ATTRIBUTE_ADDED", below)
		}
	}
}

func (p *pass) properties(old, next *objectBody) {
	for _, name := range mergeSorted(old.names, next.names) {
		was, is := old.properties[name], next.properties[name]
		switch {
		case is == nil:
			p.propertyRemoved(was, next, name)
		case was == nil:
			p.propertyAdded(old, is, next.required[name], name)
		default:
			p.descend(was, is, member("properties", name))
		}
	}
}

// open reports whether the object allows any property that it does not name.
func (o *objectBody) open() bool {
	return o.additional.open() && len(o.patterns) == 0 && o.unmatched.open()
}

// cover returns the schema of a partially open object for a property that it does not name,
// or nil if it allows none.
func (p *pass) cover(o *objectBody, name string) *node {
	for _, property := range o.patterns {
		if p.c.matches(property.pattern, name) {
			return property.node
		}
	}
	if o.additional.schema != nil {
		return o.additional.schema
	}
	return o.unmatched.schema
}

func (p *pass) propertyRemoved(was *node, next *objectBody, name string) {
	below := member("properties", name)
	if next.open() {
		p.note("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", below)
		return
	}
	cover := p.cover(next, name)
	switch {
	case cover != nil && p.covered(was, cover, below):
		p.note("PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
	case cover != nil:
		p.note("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
	case was.end().kind == kindFalse:
		p.note("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", below)
	default:
		p.note("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", below)
	}
}

func (p *pass) propertyAdded(old *objectBody, is *node, required bool, name string) {
	below := member("properties", name)
	if old.open() {
		switch {
		case is.end().kind == kindEmpty:
			p.note("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", below)
		case required && is.hasDefault():
			p.note("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL", below)
		case required:
			p.note("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", below)
		default:
			p.note("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", below)
		}
		return
	}
	if cover := p.cover(old, name); cover != nil {
		if p.covered(cover, is, below) {
			p.note("PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
		} else {
			p.note("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
		}
	}
	switch {
	case required && is.hasDefault():
		p.note("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL", below)
	case required:
		p.note("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", below)
	default:
		p.note("OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", below)
	}
}

// covered compares the schema of a named property or item with the schema for unnamed ones,
// records their differences and reports whether they are compatible.
func (p *pass) covered(old, next *node, below step) bool {
	p.descend(old, next, below)
	return p.ok(old, next)
}

func (p *pass) dependencies(old, next *objectBody) {
	for _, name := range mergeSorted(sortedKeys(old.arrays), sortedKeys(next.arrays)) {
		was, had := old.arrays[name]
		is, has := next.arrays[name]
		below := member("dependencies", name)
		switch {
		case !has:
			p.note("DEPENDENCY_ARRAY_REMOVED", below)
		case !had:
			p.note("DEPENDENCY_ARRAY_ADDED", below)
		default:
			p.dependencyNames(was, is, below)
		}
	}
	for _, name := range mergeSorted(sortedKeys(old.schemas), sortedKeys(next.schemas)) {
		was, is := old.schemas[name], next.schemas[name]
		below := member("dependencies", name)
		switch {
		case is == nil:
			p.note("DEPENDENCY_SCHEMA_REMOVED", below)
		case was == nil:
			p.note("DEPENDENCY_SCHEMA_ADDED", below)
		default:
			p.descend(was, is, below)
		}
	}
}

func (p *pass) dependencyNames(old, next []string, below step) {
	p.c.spend(len(old) + len(next))
	lost, gained := missingName(old, next), missingName(next, old)
	switch {
	case lost && gained:
		p.note("DEPENDENCY_ARRAY_CHANGED", below)
	case lost:
		p.note("DEPENDENCY_ARRAY_NARROWED", below)
	case gained:
		p.note("DEPENDENCY_ARRAY_EXTENDED", below)
	}
}

func missingName(from, in []string) bool {
	known := make(map[string]bool, len(in))
	for _, name := range in {
		known[name] = true
	}
	return slices.ContainsFunc(from, func(name string) bool { return !known[name] })
}

// rests compares the constraints for properties or items that the schemas do not name.
func (p *pass) rests(o openness, old, next rest, keyword string) {
	below := key(keyword)
	switch {
	case old.forbidden && !next.forbidden:
		p.note(o.added, below)
	case !old.forbidden && next.forbidden:
		p.note(o.removed, below)
	case old.schema == nil && next.schema != nil:
		p.note(o.narrowed, below)
	case old.schema != nil && next.schema == nil:
		p.note(o.extended, below)
	case old.schema != nil:
		p.descend(old.schema, next.schema, below)
	}
}

// mergeSorted merges two sorted lists into one without duplicates.
func mergeSorted(a, b []string) []string {
	if slices.Equal(a, b) {
		return a
	}
	merged := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			merged, a = append(merged, a[0]), a[1:]
		case a[0] > b[0]:
			merged, b = append(merged, b[0]), b[1:]
		default:
			merged, a, b = append(merged, a[0]), a[1:], b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
