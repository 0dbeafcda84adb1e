package jsonschema

import (
	"slices"

	"freshet/internal/registry/jsontree"
)

// pass applies the rules to one pair of nodes. While the solver runs (record is nil) it only
// determines whether the pair is compatible, given the current state of the pairs below. For
// the report it also records the differences.
type pass struct {
	c            *comparer
	owner        *state  // the pair being evaluated, for dependencies
	incompatible bool    // an incompatible difference was found
	record       *record // gets the differences; nil while the solver runs
	at           step    // position in the record's pair, for inlined leaves
}

// step is one step down a path: a keyword, and a name or index within it.
type step struct {
	keyword string
	name    string
	index   int
	form    stepForm
}

type stepForm uint8

const (
	stepKeyword stepForm = iota
	stepName
	stepIndex
)

func (s step) none() bool { return s.keyword == "" }

func key(keyword string) step { return step{keyword: keyword} }

func member(keyword, name string) step { return step{keyword: keyword, name: name, form: stepName} }

func element(keyword string, index int) step {
	return step{keyword: keyword, index: index, form: stepIndex}
}

// note records a difference of the pair, at a step below it or at the pair itself.
func (p *pass) note(t change, below step) {
	p.c.tick()
	info := changes[t]
	if !info.compatible {
		p.incompatible = true
	}
	if p.record != nil {
		p.record.entries = append(p.record.entries,
			entry{change: t, compatible: info.compatible, at: p.at, below: below})
	}
}

// descend compares two nodes below and includes all their differences.
func (p *pass) descend(old, next *node, below step) {
	if p.record == nil {
		if !p.ok(old, next) {
			p.incompatible = true
		}
		return
	}
	old, next = old.end(), next.end()
	switch {
	case same(old, next):
	case isLeaf(old, next):
		// A leaf has no pairs below it, so its differences go into this record.
		p.at = below
		p.apply(old, next)
		p.at = step{}
	default:
		p.record.entries = append(p.record.entries, entry{below: below, pair: pair{old, next}})
	}
}

// apply compares two nodes by the rules of docs/spec/registry.md#json-compatibility.
func (p *pass) apply(old, next *node) {
	if p.mixed(old, next) {
		return
	}
	if old.kind != next.kind {
		p.otherKind(old, next)
		return
	}
	p.about(old.about(), next.about())
	switch old.kind {
	case kindString:
		p.strings(old.text, next.text)
	case kindNumber:
		p.numbers(old.number, next.number)
	case kindEnum:
		p.enums(old.other.values, next.other.values)
	case kindConst:
		if old.other.values[0].hash != next.other.values[0].hash {
			p.note("ENUM_ARRAY_CHANGED", key("const"))
		}
	case kindNot:
		// The set of forbidden values must shrink, so the roles are exchanged.
		if p.ok(next.not, old.not) {
			p.note("NOT_TYPE_NARROWED", key("not"))
		} else {
			p.note("NOT_TYPE_EXTENDED", key("not"))
		}
	case kindObject:
		p.objects(old.object, next.object)
	case kindArray:
		p.arrays(old.array, next.array)
	case kindCombined:
		p.combinations(old.combined, next.combined)
	case kindMeta:
		if old.other.address != next.other.address {
			p.note("TYPE_CHANGED", step{})
		}
	}
}

// compareOptional compares two nodes, either of which may be nil.
func (p *pass) compareOptional(old, next *node, below step) {
	switch {
	case old == nil && next == nil:
	case old == nil:
		p.note("SCHEMA_ADDED", below)
	case next == nil:
		p.note("SCHEMA_REMOVED", below)
	default:
		p.descend(old, next, below)
	}
}

// mixed handles a pair in which only one node is combined. It returns false if the pair must
// be compared by its kinds.
func (p *pass) mixed(old, next *node) bool {
	switch {
	case old.kind != kindCombined && next.kind == kindCombined:
		body := next.combined
		if len(body.branches) == 1 {
			return p.settle(old, body.branches[0], "")
		}
		if body.criterion != allOf {
			for _, branch := range p.compatibleFirst(old, body.branches, false) {
				return p.settle(old, branch, "SUM_TYPE_EXTENDED")
			}
		}
	case old.kind == kindCombined && next.kind != kindCombined:
		body := old.combined
		if len(body.branches) == 1 {
			return p.settle(body.branches[0], next, "")
		}
		if body.criterion == allOf {
			for _, branch := range p.compatibleFirst(next, body.branches, true) {
				return p.settle(branch, next, "PRODUCT_TYPE_NARROWED")
			}
		}
	}
	return false
}

// settle includes the differences of a compatible pair and adds another one. It returns
// false for an incompatible pair.
func (p *pass) settle(old, next *node, more change) bool {
	if !p.ok(old, next) {
		return false
	}
	p.descend(old, next, step{})
	if more != "" {
		p.note(more, step{})
	}
	return true
}

// compatibleFirst returns the first branch that is compatible with other, as a list of one
// or none. It checks all branches, so that the solver discovers every pair in one pass.
func (p *pass) compatibleFirst(other *node, branches []*node, branchIsOld bool) []*node {
	var first []*node
	for _, branch := range branches {
		old, next := other, branch
		if branchIsOld {
			old, next = branch, other
		}
		if p.ok(old, next) && first == nil {
			first = []*node{branch}
		}
	}
	return first
}

// otherKind compares nodes of different kinds.
func (p *pass) otherKind(old, next *node) {
	if !kindsAgree(old, next) {
		p.note("TYPE_CHANGED", step{})
	}
}

func kindsAgree(old, next *node) bool {
	return old.kind == next.kind || old.kind == kindFalse || next.kind == kindEmpty ||
		(old.about().connectBytes && next.about().connectBytes)
}

func (p *pass) about(old, next *meta) {
	if old == next {
		return
	}
	if old.id != next.id {
		p.note("ID_CHANGED", step{})
	}
	if old.title != next.title {
		p.note("TITLE_CHANGED", step{})
	}
	if old.description != next.description {
		p.note("DESCRIPTION_CHANGED", step{})
	}
	if !sameDefault(old.defaultValue, next.defaultValue) {
		p.note("DEFAULT_CHANGED", step{})
	}
}

func sameDefault(a, b *hashed) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.hash == b.hash
}

func (p *pass) limit(b bound, old, next *jsontree.Value, keyword string) {
	switch {
	case old == nil && next == nil:
	case old == nil:
		p.note(b.added, key(keyword))
	case next == nil:
		p.note(b.removed, key(keyword))
	default:
		switch compareNumbers(old, next) {
		case -1:
			p.note(b.increased, key(keyword))
		case 1:
			p.note(b.decreased, key(keyword))
		}
	}
}

func (p *pass) strings(old, next *stringBody) {
	p.limit(maxLength, old.maxLength, next.maxLength, "maxLength")
	p.limit(minLength, old.minLength, next.minLength, "minLength")
	switch {
	case old.pattern == nil && next.pattern == nil:
	case old.pattern == nil:
		p.note("PATTERN_ADDED", key("pattern"))
	case next.pattern == nil:
		p.note("PATTERN_REMOVED", key("pattern"))
	case old.pattern.Text != next.pattern.Text:
		p.note("PATTERN_CHANGED", key("pattern"))
	}
}

func (p *pass) numbers(old, next *numberBody) {
	p.limit(maximum, old.maximum, next.maximum, "maximum")
	p.limit(minimum, old.minimum, next.minimum, "minimum")
	p.limit(exclusiveMaximum, old.exclusiveMaximum, next.exclusiveMaximum, "exclusiveMaximum")
	p.limit(exclusiveMinimum, old.exclusiveMinimum, next.exclusiveMinimum, "exclusiveMinimum")
	p.multiples(old.multipleOf, next.multipleOf)
	switch {
	case old.integer && !next.integer:
		p.note("TYPE_EXTENDED", step{})
	case !old.integer && next.integer:
		p.note("TYPE_NARROWED", step{})
	}
}

func (p *pass) multiples(old, next *jsontree.Value) {
	below := key("multipleOf")
	switch {
	case old == nil && next == nil:
	case old == nil:
		p.note("MULTIPLE_OF_ADDED", below)
	case next == nil:
		p.note("MULTIPLE_OF_REMOVED", below)
	default:
		was, is := parseDecimal(old.Text), parseDecimal(next.Text)
		switch {
		case is.compare(was) == 0:
		case is.multipleOf(was):
			p.note("MULTIPLE_OF_EXPANDED", below)
		case was.multipleOf(is):
			p.note("MULTIPLE_OF_REDUCED", below)
		default:
			p.note("MULTIPLE_OF_CHANGED", below)
		}
	}
}

func (p *pass) enums(old, next []*hashed) {
	p.c.spend(len(old) + len(next))
	lost, gained := missing(old, next), missing(next, old)
	switch {
	case lost && gained:
		p.note("ENUM_ARRAY_CHANGED", key("enum"))
	case lost:
		p.note("ENUM_ARRAY_NARROWED", key("enum"))
	case gained:
		p.note("ENUM_ARRAY_EXTENDED", key("enum"))
	}
}

// missing reports whether a value of from is not in the list in.
func missing(from, in []*hashed) bool {
	known := make(map[uint64]bool, len(in))
	for _, v := range in {
		known[v.hash] = true
	}
	return slices.ContainsFunc(from, func(v *hashed) bool { return !known[v.hash] })
}
