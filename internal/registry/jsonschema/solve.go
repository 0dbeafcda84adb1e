package jsonschema

import (
	"fmt"
	"time"
)

// The work one comparison may take.
const (
	maxPairs = 1_000_000
	maxWork  = 10_000_000
	// spendEvery is after how many steps they are reported.
	spendEvery = 1 << 12
)

// Compare returns all differences between two schemas in the backward
// direction: next is meant to accept what old accepted. The schemas are
// compatible when no difference is incompatible. It fails with ErrTooComplex
// when the comparison would take too much work. At most maxDifferences of each
// sort are listed, but never none where there is one. It reports its steps to
// spend, and ends with the error of that, if any; nil stands for no one.
//
// Compatibility of recursive schemas is a greatest fixed point: a pair of nodes
// counts as compatible until a rule says otherwise, and when it does, every
// pair that relied on it is judged again. This takes each pair once in the
// common case, whatever the order, and never recurses.
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

// state is what is known of a pair.
type state struct {
	pair
	judged     bool     // it went through the rules at least once
	bad        bool     // it is incompatible; this never changes back
	dirty      bool     // it waits to be judged again
	dependents []*state // the pairs whose verdict relied on this one
}

type comparer struct {
	states  map[pair]*state
	stack   []*state // pairs being judged, each above the one that needs it
	dirty   []*state
	missing []*state // pairs the current pass met for the first time
	report  func(steps int) error
	work    int
	spent   int // of the work, reported
	err     error
}

// solve judges the root and everything below it until nothing changes.
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
			if !again.bad {
				c.stack = append(c.stack, again)
			}
			continue
		}
		s := c.stack[len(c.stack)-1]
		p := &pass{c: c, owner: s}
		c.missing = c.missing[:0]
		p.apply(s.old, s.next)
		if len(c.missing) > 0 {
			c.stack = append(c.stack, c.missing...)
			continue
		}
		c.stack = c.stack[:len(c.stack)-1]
		s.judged = true
		if p.broken && !s.bad {
			c.markIncompatible(s)
		}
	}
}

// markIncompatible makes a pair incompatible and has its dependents judged again.
func (c *comparer) markIncompatible(s *state) {
	s.bad = true
	for _, d := range s.dependents {
		if d.judged && !d.bad && !d.dirty {
			d.dirty = true
			c.dirty = append(c.dirty, d)
		}
	}
	s.dependents = nil
}

// ok says whether a pair is compatible as far as is known.
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
		return !leaf.broken
	}
	s, known := p.c.states[pair{old, next}]
	switch {
	case known && s.bad:
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
		c.fail("comparing takes more than %d pairs of subschemas", maxPairs)
		return
	}
	s := &state{pair: at}
	c.states[at] = s
	c.missing = append(c.missing, s)
}

// waiting says whether the current pass met pairs that are not judged yet, so
// that its outcome does not count.
func (p *pass) waiting() bool { return len(p.c.missing) > 0 }

// same says that two nodes cannot differ: they were written alike and refer to
// nothing whose meaning depends on the document around them.
func same(old, next *node) bool {
	return old == next || (old.src != nil && next.src != nil && old.hash == next.hash &&
		!old.refs && old.draft == next.draft)
}

// isLeaf says whether a pair is judged without looking at any other pair.
func isLeaf(old, next *node) bool {
	if old.kind == kindCombined || next.kind == kindCombined {
		return false
	}
	if old.kind != next.kind {
		return true
	}
	return old.kind != kindObject && old.kind != kindArray && old.kind != kindNot
}

// matches asks whether a name fits a patternProperties expression.
func (c *comparer) matches(p *pattern, name string) bool {
	began := time.Now()
	found, err := p.find(name)
	// What a pattern costs is not to be seen in its text.
	c.spend(1 + len(name)/64 + int(time.Since(began)/stepTime))
	if err != nil {
		c.fail("%v", err)
	}
	return found
}

func (c *comparer) tick() { c.spend(1) }

// affords says whether there may be so much more work, before it is begun.
func (c *comparer) affords(work int) bool {
	if c.work+work > maxWork {
		c.fail("comparing takes more than %d steps", maxWork)
	}
	return c.err == nil
}

// spend accounts for work, and reports it now and then.
func (c *comparer) spend(work int) {
	c.work += work
	if c.work > maxWork {
		c.fail("comparing takes more than %d steps", maxWork)
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
