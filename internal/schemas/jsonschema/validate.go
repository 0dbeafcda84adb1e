package jsonschema

import (
	"fmt"
	"strings"
	"time"

	"freshet/internal/errs"
)

// ErrMismatch is what Validate wraps when a document does not conform.
var ErrMismatch = errs.New(errs.Invalid, "document does not match its JSON Schema")

// The work one document may cause. A step is one schema applied to one value.
const (
	maxSteps     = 2_000_000
	maxNesting   = 20_000
	validateTime = 2 * time.Second
)

// Validate says whether the document conforms to the schema. Formats are
// asserted in the drafts that assert them, which are those before 2019-09.
func (s *Schema) Validate(document []byte) error {
	if len(document) > maxText {
		return fmt.Errorf("%w: it is longer than %d bytes", ErrMismatch, maxText)
	}
	v, err := parseValue(string(document))
	if err != nil {
		return fmt.Errorf("%w: invalid JSON: %w", ErrMismatch, err)
	}
	c := &checker{dynamic: s.dynamic, deadline: time.Now().Add(validateTime)}
	if !c.dynamic {
		c.known = map[application]verdict{}
	}
	root := site{doc: s.doc, value: s.doc.root}
	ok := c.eval(root, v, nil)
	if c.err != nil {
		return c.err
	}
	if ok {
		return nil
	}
	e := &explainer{c: c}
	e.explain(root, v, nil)
	return fmt.Errorf("%w: %s", ErrMismatch, strings.Join(e.found, "; "))
}

// application is a schema applied to a value of the document.
type application struct{ schema, value *value }

type verdict uint8

const (
	unknown verdict = iota
	inProgress
	valid
	invalid
)

// checker judges one document. Each application is judged once, unless dynamic
// references make its meaning depend on how one came there.
type checker struct {
	known    map[application]verdict
	dynamic  bool
	scope    []resource // the schemas with a name that we are inside of
	steps    int
	nesting  int
	deadline time.Time
	err      error
}

// resource is a schema with a name of its own.
type resource struct {
	doc  *document
	base string
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrTooComplex, fmt.Sprintf(format, args...))
	}
}

// spend accounts for steps and says whether there are any left.
func (c *checker) spend(steps int) bool {
	const clockEvery = 1 << 10
	before := c.steps / clockEvery
	c.steps += steps
	if c.steps > maxSteps {
		c.fail("checking the document takes more than %d steps", maxSteps)
	}
	if c.steps/clockEvery != before && time.Now().After(c.deadline) {
		c.fail("checking the document takes more than %s", validateTime)
	}
	return c.err == nil
}

// eval says whether v conforms to the schema at s. If marks is given, the
// members or items of v that the schema has looked at are marked in it.
func (c *checker) eval(s site, v *value, seen *marks) bool {
	if !c.spend(1) {
		return false
	}
	if s.meta != "" {
		return c.evalMeta(s.meta, v)
	}
	if s.value.kind != objectValue {
		return s.value.kind != boolValue || s.value.truth
	}
	if c.nesting >= maxNesting {
		c.fail("checking the document goes deeper than %d schemas", maxNesting)
		return false
	}
	c.nesting++
	defer func() { c.nesting-- }()
	if c.dynamic {
		defer c.enter(s)()
		return c.evalObject(s, v, seen)
	}
	if seen != nil {
		return c.evalObject(s, v, seen)
	}
	at := application{s.value, v}
	switch c.known[at] {
	case valid:
		return true
	case invalid:
		return false
	case inProgress:
		c.fail("a reference leads back to itself")
		return false
	}
	c.known[at] = inProgress
	ok := c.evalObject(s, v, nil)
	c.known[at] = invalid
	if ok {
		c.known[at] = valid
	}
	return ok
}

// evalObject applies every keyword of a schema object.
func (c *checker) evalObject(s site, v *value, seen *marks) bool {
	if ref, ok := s.value.str("$ref"); ok && !s.doc.draft.modern() {
		return c.follow(s, ref, v, seen)
	}
	if c.violated(s, v) != "" {
		return false
	}
	own := seen
	leftover := s.leftover(v)
	if leftover != "" || seen != nil {
		own = newMarks(v)
	}
	if c.inPlace(s, v, own) != "" || c.inside(s, v, own) != nil {
		return false
	}
	if leftover != "" && c.unevaluated(s, leftover, v, own) != nil {
		return false
	}
	if seen != nil {
		seen.merge(own)
	}
	return c.err == nil
}

// leftover returns the keyword of the schema at s, if it has it, that speaks of
// what no other keyword has looked at in v.
func (s site) leftover(v *value) string {
	keyword := ""
	switch {
	case !s.doc.draft.modern():
	case v.kind == objectValue:
		keyword = "unevaluatedProperties"
	case v.kind == arrayValue:
		keyword = "unevaluatedItems"
	}
	if keyword == "" || s.value.get(keyword) == nil {
		return ""
	}
	return keyword
}

// follow applies the schema behind a reference.
func (c *checker) follow(s site, ref string, v *value, seen *marks) bool {
	target, err := s.resolve(ref)
	if err != nil {
		// Parse resolved every reference where schemas stand; this one stands
		// where only a pointer leads.
		if c.err == nil {
			c.err = fmt.Errorf("%w: %w", ErrMismatch, err)
		}
		return false
	}
	return c.eval(target, v, seen)
}

// sub returns a schema inside s.
func (s site) sub(v *value) site { return site{doc: s.doc, value: v, base: s.inner()} }

// matches asks a regular expression, within the time that is left.
func (c *checker) matches(s site, text, in string) bool {
	p := s.doc.pattern(text)
	if p == nil || !c.spend(1+len(in)/256) {
		return false
	}
	started := time.Now()
	found, err := p.find(in)
	if err != nil {
		c.fail("%v", err)
	}
	if time.Since(started) > patternTime/10 {
		// Slow matches add up; do not wait for the next look at the clock.
		c.spend(1 << 10)
	}
	return found
}

// marks are the members of an object or the items of an array that some schema
// has looked at.
type marks struct{ seen []bool }

func newMarks(v *value) *marks { return &marks{seen: make([]bool, len(v.items))} }

func (m *marks) set(i int) {
	if m != nil {
		m.seen[i] = true
	}
}

func (m *marks) merge(from *marks) {
	for i, seen := range from.seen {
		m.seen[i] = m.seen[i] || seen
	}
}
