package protobuf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The limits of one comparison. Every pair of messages is compared once, so only malicious
// schemas reach them: one huge message against thousands of others, or a chain of thousands
// of referenced messages.
const (
	maxCompared    = 5_000_000 // fields
	maxDifferences = 200_000   // differences
	maxChain       = 1000      // referenced messages inside each other
)

// Compare lists the differences between old and new, in the order of Confluent Schema
// Registry. Data written with old can be read with new if every difference is Compatible. It
// reports its steps to spend, which may be nil, and returns the error of spend.
func Compare(old, new *Schema, spend func(steps int) error) ([]Difference, error) {
	c := &comparer{old: old.root, new: new.root, pairs: map[[2]*message]bool{}, report: spend}
	was, now := c.old.model, c.new.model
	if was.pkg != now.pkg {
		c.add(packageChanged)
	}
	c.messages(scoped{c.old, was.pkg}, scoped{c.new, now.pkg}, was.messages, now.messages)
	c.enums(was.enums, now.enums)
	if c.err != nil {
		return nil, c.err
	}
	return c.differences, nil
}

type comparer struct {
	old, new    *source
	path        []string
	differences []Difference
	report      func(steps int) error
	work        int
	spent       int   // part of work that was reported
	err         error // ends the comparison
	depth       int
	// pairs has every pair of messages that was compared; the value is true if it is
	// incompatible. A pair that is being compared counts as compatible.
	pairs map[[2]*message]bool
}

// scoped is a scope in which the names of a declaration are looked up.
type scoped struct {
	file *source
	name string
}

func (s scoped) nested(name string) scoped { return scoped{s.file, qualify(s.name, name)} }

// spend counts work, and returns false if the comparison must end.
func (c *comparer) spend(work int) bool {
	const every = 1 << 12
	switch c.work += work; {
	case c.err != nil:
	case c.work > maxCompared:
		c.err = fmt.Errorf("%w: comparison needs more than %d fields", ErrTooComplex, maxCompared)
	case len(c.differences) > maxDifferences:
		c.err = fmt.Errorf("%w: comparison has more than %d differences", ErrTooComplex, maxDifferences)
	case c.report != nil && c.work-c.spent >= every:
		c.err = c.report(c.work - c.spent)
		c.spent = c.work
	}
	return c.err == nil
}

func (c *comparer) add(typ string) {
	if !c.spend(1 + len(c.path)/8) {
		return
	}
	c.differences = append(c.differences, newDifference(typ, "#/"+strings.Join(c.path, "/")))
}

// at calls f with the path extended by a step.
func (c *comparer) at(step string, f func()) {
	c.path = append(c.path, step)
	f()
	c.path = c.path[:len(c.path)-1]
}

func (c *comparer) atTag(tag int64, f func()) { c.at(strconv.FormatInt(tag, 10), f) }

// messages compares the messages of two scopes. MESSAGE_MOVED means that the index of a
// message, which records contain, has changed.
func (c *comparer) messages(was, now scoped, old, new []*message) {
	oldNames, oldAt := indexed(old, func(m *message) string { return m.name })
	newNames, newAt := indexed(new, func(m *message) string { return m.name })
	for _, name := range hashOrder(oldNames, newNames) {
		i, had := oldAt[name]
		j, has := newAt[name]
		c.at(name, func() {
			switch {
			case !has:
				if !old[i].mapEntry() {
					c.add(messageRemoved)
				}
			case !had:
				c.add(messageAdded)
			default:
				c.message(was.nested(name), now.nested(name), old[i], new[j])
				if i != j {
					c.add(messageMoved)
				}
			}
		})
	}
}

// indexed lists the keys of items, each once, with the position of its last occurrence.
func indexed[T any, K comparable](items []T, key func(T) K) ([]K, map[K]int) {
	keys := make([]K, 0, len(items))
	at := make(map[K]int, len(items))
	for i, item := range items {
		k := key(item)
		if _, again := at[k]; !again {
			keys = append(keys, k)
		}
		at[k] = i
	}
	return keys, at
}

func (c *comparer) message(was, now scoped, old, new *message) {
	pair := [2]*message{old, new}
	if _, met := c.pairs[pair]; met {
		return
	}
	c.pairs[pair] = false
	before := len(c.differences)
	c.fields(was, now, old, new)
	c.messages(was, now, old.messages, new.messages)
	c.enums(old.enums, new.enums)
	c.pairs[pair] = slices.ContainsFunc(c.differences[before:], func(d Difference) bool { return !d.Compatible })
}

func (c *comparer) enums(old, new []*enum) {
	oldNames, oldAt := indexed(old, func(e *enum) string { return e.name })
	newNames, newAt := indexed(new, func(e *enum) string { return e.name })
	for _, name := range hashOrder(oldNames, newNames) {
		i, had := oldAt[name]
		j, has := newAt[name]
		c.at(name, func() {
			switch {
			case !has:
				c.add(enumRemoved)
			case !had:
				c.add(enumAdded)
			default:
				c.enumValues(old[i].values, new[j].values)
			}
		})
	}
}

func (c *comparer) enumValues(old, new []enumValue) {
	oldTags, oldAt := indexed(old, func(v enumValue) int64 { return v.number })
	newTags, newAt := indexed(new, func(v enumValue) int64 { return v.number })
	for _, tag := range sortedUnion(oldTags, newTags) {
		i, had := oldAt[tag]
		j, has := newAt[tag]
		c.atTag(tag, func() {
			switch {
			case !has:
				c.add(enumConstRemoved)
			case !had:
				c.add(enumConstAdded)
			case old[i].name != new[j].name:
				c.add(enumConstChanged)
			}
		})
	}
}
