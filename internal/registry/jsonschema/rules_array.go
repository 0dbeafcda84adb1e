package jsonschema

func (p *pass) arrays(old, next *arrayBody) {
	p.compareOptional(old.all, next.all, key("items"))
	for i := range max(len(old.tuple), len(next.tuple)) {
		switch {
		case i >= len(next.tuple):
			p.itemRemoved(old.tuple[i], next, i)
		case i >= len(old.tuple):
			p.itemAdded(old, next.tuple[i], i)
		default:
			p.descend(old.tuple[i], next.tuple[i], element("items", i))
		}
	}
	p.rests(additionalItems, old.additional, next.additional, "additionalItems")
	p.rests(unevaluatedItems, old.unmatched, next.unmatched, "unevaluatedItems")
	p.limit(maxItems, old.maximum, next.maximum, "maxItems")
	p.limit(minItems, old.minimum, next.minimum, "minItems")
	p.limit(maxContains, old.maxContains, next.maxContains, "maxContains")
	p.limit(minContains, old.minContains, next.minContains, "minContains")
	switch {
	case old.unique && !next.unique:
		p.note("UNIQUE_ITEMS_REMOVED", key("uniqueItems"))
	case !old.unique && next.unique:
		p.note("UNIQUE_ITEMS_ADDED", key("uniqueItems"))
	}
}

// open reports whether the array allows any items after the tuple.
func (a *arrayBody) open() bool { return a.additional.open() && a.unmatched.open() }

// cover returns the schema for items after the tuple, or nil if there is none.
func (a *arrayBody) cover() *node {
	if a.additional.schema != nil {
		return a.additional.schema
	}
	return a.unmatched.schema
}

func (p *pass) itemRemoved(was *node, next *arrayBody, i int) {
	below := element("items", i)
	cover := next.cover()
	switch {
	case next.open():
		p.note("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", below)
	case cover != nil && p.covered(was, cover, below):
		p.note("ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
	case cover != nil:
		p.note("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
	case was.end().kind == kindFalse:
		p.note("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", below)
	default:
		p.note("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", below)
	}
}

func (p *pass) itemAdded(old *arrayBody, is *node, i int) {
	below := element("items", i)
	cover := old.cover()
	switch {
	case old.open() && is.end().kind == kindEmpty:
		p.note("ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", below)
	case old.open():
		p.note("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", below)
	case cover == nil:
		p.note("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", below)
	case p.covered(cover, is, below):
		p.note("ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
	default:
		p.note("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", below)
	}
}
