package avro

import (
	"fmt"
	"slices"
	"strings"
)

// outcome has the problems of a pair of types, nil if they are compatible. It is a tree, so
// that pairs that occur often share their problems instead of copying them. For the same
// reason messages and paths are built only when the problems are listed.
type outcome struct {
	kind   string // of a leaf: the type of its problem
	path   *schemaPath
	reader *node
	writer *node
	field  *field // of the reader, if the problem is a field
	parts  []*outcome
}

// problem returns an outcome with one problem.
func problem(at *schemaPath, kind string, r, w *node) *outcome {
	return &outcome{kind: kind, path: at, reader: r, writer: w}
}

// message returns the detail of a problem, with Java's texts.
func (o *outcome) message() string {
	r, w := o.reader, o.writer
	switch o.kind {
	case NameMismatch:
		return "expected: " + w.named.name.full
	case FixedSizeMismatch:
		return fmt.Sprintf("expected: %d, found: %d", w.named.size, r.named.size)
	case MissingEnumSymbols:
		return "[" + strings.Join(missingSymbols(r.named, w.named), ", ") + "]"
	case MissingUnionBranch:
		return "reader union lacking writer type: " + w.kind.upper()
	case TypeMismatch:
		return "reader type: " + r.kind.upper() + " not compatible with writer type: " + w.kind.upper()
	case ReaderFieldNoDefault:
		return o.field.name
	}
	return ""
}

// with adds another outcome after o.
func (o *outcome) with(other *outcome) *outcome {
	switch {
	case other == nil:
		return o
	case o == nil:
		return &outcome{parts: []*outcome{other}}
	case o.kind != "":
		return &outcome{parts: []*outcome{o, other}}
	}
	o.parts = append(o.parts, other)
	return o
}

// list returns the problems in the order in which they were found, up to maxCheckProblems
// and maxProblemBytes.
func (o *outcome) list() []Incompatibility {
	var all []Incompatibility
	bytes := 0
	stack := []*outcome{o}
	for len(stack) > 0 && len(all) < maxCheckProblems && bytes < maxProblemBytes {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if o == nil {
			continue
		}
		if o.kind != "" {
			i := Incompatibility{Type: o.kind, Message: o.message(), Path: o.path.String()}
			bytes += len(i.Message) + len(i.Path)
			all = append(all, i)
		}
		for _, part := range slices.Backward(o.parts) {
			stack = append(stack, part)
		}
	}
	return all
}

// schemaPath is a path into the reader's schema as a linked list from its end to its beginning.
// nil is the root.
type schemaPath struct {
	parent *schemaPath
	token  string
}

// down returns the path extended by a token. An empty token does not extend it.
func (p *schemaPath) down(token string) *schemaPath {
	if token == "" {
		return p
	}
	return &schemaPath{p, token}
}

// String returns the path as a JSON pointer.
func (p *schemaPath) String() string {
	var tokens []string
	for ; p != nil; p = p.parent {
		tokens = append(tokens, p.token)
	}
	var b strings.Builder
	b.WriteByte('/')
	for i := len(tokens) - 1; i >= 0; i-- {
		b.WriteString(tokens[i])
		if i > 0 {
			b.WriteByte('/')
		}
	}
	return b.String()
}

// unionIndex finds the branches of a large union that may be able to read a writer's type.
type unionIndex struct {
	plain  []*node // branches of unnamed types, at most one of each
	byName map[string][]*node
}

// candidates returns the branches of a union to try for a writer's type, in their order. It
// returns all branches of a small union, as Java tries all and problems keep the path of
// their first comparison. Of a large union it returns only those whose names match.
func (c *checker) candidates(union, w *node) []*node {
	if len(union.branches) < largeUnion {
		return union.branches
	}
	index := c.unions[union]
	if index == nil {
		index = indexUnion(union)
		if c.unions == nil {
			c.unions = map[*node]*unionIndex{}
		}
		c.unions[union] = index
	}
	if !w.kind.named() {
		return index.plain
	}
	var found []*node
	for _, b := range slices.Concat(index.byName[w.named.name.name], index.byName["."+w.named.name.full]) {
		if b.kind == w.kind {
			found = append(found, b)
		}
	}
	return found
}

func indexUnion(union *node) *unionIndex {
	index := &unionIndex{byName: map[string][]*node{}}
	for _, b := range union.branches {
		if !b.kind.named() {
			index.plain = append(index.plain, b)
			continue
		}
		index.byName[b.named.name.name] = append(index.byName[b.named.name.name], b)
		for _, a := range b.named.aliases {
			key := "." + a.alias(b.named.name)
			index.byName[key] = append(index.byName[key], b)
		}
	}
	return index
}
