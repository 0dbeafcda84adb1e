package jsonschema

// pass applies the rules to one pair of nodes. While the solver runs (record is
// nil) it only finds out whether the pair is compatible, given what is known of
// the pairs below; when the report is written it also says why.
type pass struct {
	c      *comparer
	owner  *state  // the pair being judged, for dependencies
	broken bool    // an incompatible difference was met
	record *record // where differences go, or nil
	at     step    // where in the record's pair we are, for inlined leaves
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

func member(keyword, name string) step {
	return step{keyword: keyword, name: name, form: stepName}
}

func element(keyword string, index int) step {
	return step{keyword: keyword, index: index, form: stepIndex}
}

// note reports a difference of the pair, at a step below it or at itself.
func (p *pass) note(t change, below step) {
	p.c.tick()
	info := changes[t]
	if !info.compatible {
		p.broken = true
	}
	if p.record != nil {
		p.record.entries = append(p.record.entries, entry{change: t, compatible: info.compatible, at: p.at, below: below})
	}
}

// descend compares two nodes below and takes over all their differences.
func (p *pass) descend(old, new *node, below step) {
	if p.record == nil {
		if !p.ok(old, new) {
			p.broken = true
		}
		return
	}
	old, new = old.end(), new.end()
	switch {
	case same(old, new):
	case isLeaf(old, new):
		// A leaf has no pairs below it, so it needs no record of its own.
		p.at = below
		p.apply(old, new)
		p.at = step{}
	default:
		p.record.entries = append(p.record.entries, entry{below: below, pair: pair{old, new}})
	}
}

// apply is the comparison of spec 3, for two nodes that exist.
func (p *pass) apply(old, new *node) {
	if p.mixed(old, new) {
		return
	}
	if old.kind != new.kind {
		p.otherKind(old, new)
		return
	}
	p.about(old.about(), new.about())
	switch old.kind {
	case kindString:
		p.strings(old.body.(*stringBody), new.body.(*stringBody))
	case kindNumber:
		p.numbers(old.body.(*numberBody), new.body.(*numberBody))
	case kindEnum:
		p.enums(old.body.([]*value), new.body.([]*value))
	case kindConst:
		if old.body.(*value).hash != new.body.(*value).hash {
			p.note("ENUM_ARRAY_CHANGED", key("const"))
		}
	case kindNot:
		// What is forbidden must shrink, so the comparison turns round.
		if p.ok(new.body.(*node), old.body.(*node)) {
			p.note("NOT_TYPE_NARROWED", key("not"))
		} else {
			p.note("NOT_TYPE_EXTENDED", key("not"))
		}
	case kindObject:
		p.objects(old.body.(*objectBody), new.body.(*objectBody))
	case kindArray:
		p.arrays(old.body.(*arrayBody), new.body.(*arrayBody))
	case kindCombined:
		p.combined(old.body.(*combinedBody), new.body.(*combinedBody))
	case kindMeta:
		if old.body.(string) != new.body.(string) {
			p.note("TYPE_CHANGED", step{})
		}
	}
}

// maybe compares two nodes of which either may be absent.
func (p *pass) maybe(old, new *node, below step) {
	switch {
	case old == nil && new == nil:
	case old == nil:
		p.note("SCHEMA_ADDED", below)
	case new == nil:
		p.note("SCHEMA_REMOVED", below)
	default:
		p.descend(old, new, below)
	}
}

// mixed handles a combined node on one side only, and says whether that
// settled the pair. If it did not, the classes decide.
func (p *pass) mixed(old, new *node) bool {
	switch {
	case old.kind != kindCombined && new.kind == kindCombined:
		body := new.body.(*combinedBody)
		if len(body.branches) == 1 {
			return p.settle(old, body.branches[0], "")
		}
		if body.criterion != allOf {
			for _, branch := range p.compatibleFirst(old, body.branches, false) {
				return p.settle(old, branch, "SUM_TYPE_EXTENDED")
			}
		}
	case old.kind == kindCombined && new.kind != kindCombined:
		body := old.body.(*combinedBody)
		if len(body.branches) == 1 {
			return p.settle(body.branches[0], new, "")
		}
		if body.criterion == allOf {
			for _, branch := range p.compatibleFirst(new, body.branches, true) {
				return p.settle(branch, new, "PRODUCT_TYPE_NARROWED")
			}
		}
	}
	return false
}

// settle takes over the differences of a compatible pair, and adds one.
func (p *pass) settle(old, new *node, more change) bool {
	if !p.ok(old, new) {
		return false
	}
	p.descend(old, new, step{})
	if more != "" {
		p.note(more, step{})
	}
	return true
}

// compatibleFirst returns the first branch that is compatible with other, as a
// list of one or none. All branches are asked, so that the solver meets every
// pair at once.
func (p *pass) compatibleFirst(other *node, branches []*node, branchIsOld bool) []*node {
	var first []*node
	for _, branch := range branches {
		old, new := other, branch
		if branchIsOld {
			old, new = branch, other
		}
		if p.ok(old, new) && first == nil {
			first = []*node{branch}
		}
	}
	return first
}

// otherKind judges nodes of different classes.
func (p *pass) otherKind(old, new *node) {
	if !kindsAgree(old, new) {
		p.note("TYPE_CHANGED", step{})
	}
}

func kindsAgree(old, new *node) bool {
	return old.kind == new.kind || old.kind == kindFalse || new.kind == kindEmpty ||
		(old.about().connectBytes && new.about().connectBytes)
}

func (p *pass) about(old, new *meta) {
	if old == new {
		return
	}
	if old.id != new.id {
		p.note("ID_CHANGED", step{})
	}
	if old.title != new.title {
		p.note("TITLE_CHANGED", step{})
	}
	if old.description != new.description {
		p.note("DESCRIPTION_CHANGED", step{})
	}
	if !sameValue(old.fallback, new.fallback) {
		p.note("DEFAULT_CHANGED", step{})
	}
}

func sameValue(a, b *value) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.hash == b.hash
}

func (p *pass) limit(b bound, old, new *value, keyword string) {
	switch {
	case old == nil && new == nil:
	case old == nil:
		p.note(b.added, key(keyword))
	case new == nil:
		p.note(b.removed, key(keyword))
	default:
		switch compareNumbers(old, new) {
		case -1:
			p.note(b.increased, key(keyword))
		case 1:
			p.note(b.decreased, key(keyword))
		}
	}
}

func (p *pass) strings(old, new *stringBody) {
	p.limit(maxLength, old.maxLength, new.maxLength, "maxLength")
	p.limit(minLength, old.minLength, new.minLength, "minLength")
	switch {
	case sameValue(old.pattern, new.pattern):
	case old.pattern == nil:
		p.note("PATTERN_ADDED", key("pattern"))
	case new.pattern == nil:
		p.note("PATTERN_REMOVED", key("pattern"))
	default:
		p.note("PATTERN_CHANGED", key("pattern"))
	}
}

func (p *pass) numbers(old, new *numberBody) {
	p.limit(maximum, old.maximum, new.maximum, "maximum")
	p.limit(minimum, old.minimum, new.minimum, "minimum")
	p.limit(exclusiveMaximum, old.exclusiveMaximum, new.exclusiveMaximum, "exclusiveMaximum")
	p.limit(exclusiveMinimum, old.exclusiveMinimum, new.exclusiveMinimum, "exclusiveMinimum")
	p.multiples(old.multipleOf, new.multipleOf)
	switch {
	case old.integer && !new.integer:
		p.note("TYPE_EXTENDED", step{})
	case !old.integer && new.integer:
		p.note("TYPE_NARROWED", step{})
	}
}

func (p *pass) multiples(old, new *value) {
	below := key("multipleOf")
	switch {
	case sameValue(old, new):
	case old == nil:
		p.note("MULTIPLE_OF_ADDED", below)
	case new == nil:
		p.note("MULTIPLE_OF_REMOVED", below)
	default:
		was, is := parseDecimal(old.text), parseDecimal(new.text)
		switch {
		case is.multipleOf(was):
			p.note("MULTIPLE_OF_EXPANDED", below)
		case was.multipleOf(is):
			p.note("MULTIPLE_OF_REDUCED", below)
		default:
			p.note("MULTIPLE_OF_CHANGED", below)
		}
	}
}

func (p *pass) enums(old, new []*value) {
	p.c.spend(len(old) + len(new))
	lost, gained := missing(old, new), missing(new, old)
	switch {
	case lost && gained:
		p.note("ENUM_ARRAY_CHANGED", key("enum"))
	case lost:
		p.note("ENUM_ARRAY_NARROWED", key("enum"))
	case gained:
		p.note("ENUM_ARRAY_EXTENDED", key("enum"))
	}
}

// missing says whether some value of from is not in the other list.
func missing(from, in []*value) bool {
	known := make(map[uint64]bool, len(in))
	for _, v := range in {
		known[v.hash] = true
	}
	for _, v := range from {
		if !known[v.hash] {
			return true
		}
	}
	return false
}
