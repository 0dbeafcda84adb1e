package jsonschema

import (
	"fmt"
	"time"
)

// The limits of work for one comparison.
const (
	maxPairs = 1_000_000
	maxWork  = 10_000_000
	// spendEvery is the number of steps between two reports to spend.
	spendEvery = 1 << 12
)

// Compare returns the differences between two schemas in the backward direction: next should
// accept every document that old accepts. The schemas are compatible if no difference is
// incompatible. Compare returns ErrTooComplex if it would need too much work. It lists at
// most maxDifferences compatible and incompatible differences each, and at least one
// incompatible difference of incompatible schemas. It reports its steps to spend, which may
// be nil, and returns the error of spend.
//
// Compatibility of recursive schemas is a greatest fixed point: a pair of nodes counts as
// compatible until a rule finds a problem. Then every pair that depends on it is evaluated
// again. In the common case each pair is evaluated once, in any order, without recursion.
func Compare(old, next *Schema, spend func(steps int) error) ([]Difference, error) {
	c := &comparer{states: map[pair]*state{}, report: spend}
	root := pair{old.root.end(), next.root.end()}
	if same(root.old, root.next) {
		return nil, nil
	}
	c.solve(root)
	if c.err != nil {
		return nil, c.err
	}
	differences := c.differences(root)
	return differences, c.err
}

// pair is an old node to be compared with a new one; both are ends of references.
type pair struct{ old, next *node }

// state is the state of a pair in the solver.
type state struct {
	pair
	evaluated    bool     // the rules were applied at least once
	incompatible bool     // it is incompatible; this never changes back
	dirty        bool     // it must be evaluated again
	dependents   []*state // the pairs whose results depend on this one
}

type comparer struct {
	states      map[pair]*state
	stack       []*state // pairs being evaluated, each above the one that needs it
	dirty       []*state
	unevaluated []*state // pairs that the current pass discovered
	report      func(steps int) error
	work        int
	spent       int // part of work that was reported
	err         error
}

// solve evaluates the root and all pairs below it until no result changes.
func (c *comparer) solve(root pair) {
	first := &state{pair: root}
	c.states[root] = first
	c.stack = append(c.stack, first)
	for c.err == nil {
		if len(c.stack) == 0 {
			if len(c.dirty) == 0 {
				return
			}
			again := c.dirty[len(c.dirty)-1]
			c.dirty = c.dirty[:len(c.dirty)-1]
			again.dirty = false
			if !again.incompatible {
				c.stack = append(c.stack, again)
			}
			continue
		}
		s := c.stack[len(c.stack)-1]
		p := &pass{c: c, owner: s}
		c.unevaluated = c.unevaluated[:0]
		p.apply(s.old, s.next)
		if len(c.unevaluated) > 0 {
			c.stack = append(c.stack, c.unevaluated...)
			continue
		}
		c.stack = c.stack[:len(c.stack)-1]
		s.evaluated = true
		if p.incompatible && !s.incompatible {
			c.markIncompatible(s)
		}
	}
}

// markIncompatible marks a pair as incompatible and its dependents as dirty.
func (c *comparer) markIncompatible(s *state) {
	s.incompatible = true
	for _, d := range s.dependents {
		if d.evaluated && !d.incompatible && !d.dirty {
			d.dirty = true
			c.dirty = append(c.dirty, d)
		}
	}
	s.dependents = nil
}

// ok reports whether a pair is compatible in the current state of the solver.
func (p *pass) ok(old, next *node) bool {
	p.c.tick()
	if p.c.err != nil {
		return true
	}
	old, next = old.end(), next.end()
	if same(old, next) {
		return true
	}
	if isLeaf(old, next) {
		leaf := &pass{c: p.c}
		leaf.apply(old, next)
		return !leaf.incompatible
	}
	s, known := p.c.states[pair{old, next}]
	switch {
	case known && s.incompatible:
		return false
	case known && p.owner != nil:
		s.dependents = append(s.dependents, p.owner)
	case !known && p.owner != nil:
		p.c.discover(pair{old, next})
	}
	return true
}

func (c *comparer) discover(at pair) {
	if len(c.states) >= maxPairs {
		c.fail("comparison needs more than %d pairs of subschemas", maxPairs)
		return
	}
	s := &state{pair: at}
	c.states[at] = s
	c.unevaluated = append(c.unevaluated, s)
}

// hasUnevaluated reports whether the current pass discovered pairs that are not evaluated yet, so
// that its result is not final.
func (p *pass) hasUnevaluated() bool { return len(p.c.unevaluated) > 0 }

// same reports whether two nodes are equal: their schemas are equal and contain no
// references, whose targets depend on the document.
func same(old, next *node) bool {
	return old == next || (old.src != nil && next.src != nil && old.hash == next.hash &&
		!old.refs && old.draft == next.draft)
}

// isLeaf reports whether the result of a pair depends on no other pair.
func isLeaf(old, next *node) bool {
	if old.kind == kindCombined || next.kind == kindCombined {
		return false
	}
	if old.kind != next.kind {
		return true
	}
	return old.kind != kindObject && old.kind != kindArray && old.kind != kindNot
}

// matches reports whether a name matches a patternProperties expression.
func (c *comparer) matches(p *pattern, name string) bool {
	began := time.Now()
	found, err := p.find(name)
	// The cost of a pattern does not follow from its length, so its time is counted.
	c.spend(1 + len(name)/64 + int(time.Since(began)/stepTime))
	if err != nil {
		c.fail("%v", err)
	}
	return found
}

func (c *comparer) tick() { c.spend(1) }

// affords reports whether the limit allows so much more work. It is called before the work
// starts.
func (c *comparer) affords(work int) bool {
	if c.work+work > maxWork {
		c.fail("comparison needs more than %d steps", maxWork)
	}
	return c.err == nil
}

// spend counts work, and reports it every spendEvery steps.
func (c *comparer) spend(work int) {
	c.work += work
	if c.work > maxWork {
		c.fail("comparison needs more than %d steps", maxWork)
	}
	if c.report == nil || c.work-c.spent < spendEvery || c.err != nil {
		return
	}
	c.err = c.report(c.work - c.spent)
	c.spent = c.work
}

func (c *comparer) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrTooComplex, fmt.Sprintf(format, args...))
	}
}
