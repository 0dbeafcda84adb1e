package avro

import (
	"slices"
	"strconv"
)

// Check lists the reasons why data written with the writer's schema cannot be read with the
// reader's, none if it can. The rules, the order of the problems and their paths are those
// of Java's SchemaCompatibility; logical types, docs, orders and properties have no
// influence. Check reports its steps to spend, which may be nil, and returns the error of
// spend.
func Check(reader, writer *Schema, spend func(steps int) error) ([]Incompatibility, error) {
	c := checker{memo: map[pair]*outcome{}, report: spend}
	result := c.compare(nil, "", reader.root, writer.root)
	switch {
	case c.err != nil:
		return nil, c.err
	case c.fatal != nil:
		return []Incompatibility{*c.fatal}, nil
	}
	return result.list(), nil
}

// checker compares pairs of nodes. Each pair is compared once, and its problems keep the
// path of that comparison. A pair that occurs again while it is being compared counts as
// compatible.
type checker struct {
	memo   map[pair]*outcome
	unions map[*node]*unionIndex
	report func(steps int) error
	work   int
	spent  int // part of work that was reported
	depth  int
	fatal  *Incompatibility // ends the check
	err    error            // ends the check
}

type pair struct{ reader, writer *node }

// compare returns the outcome for the pair at the path at/token.
func (c *checker) compare(at *schemaPath, token string, r, w *node) *outcome {
	if c.work++; c.work > maxCheckWork || c.depth >= maxCheckDepth || len(c.memo) > maxCheckPairs {
		c.stop(Incompatibility{
			Type: LimitExceeded, Path: "/",
			Message: "comparison needs more than " + strconv.Itoa(maxCheckPairs) + " pairs of types or " +
				strconv.Itoa(maxCheckDepth) + " levels",
		})
	}
	if c.report != nil && c.work-c.spent >= spendEvery && c.err == nil {
		c.err = c.report(c.work - c.spent)
		c.spent = c.work
	}
	if c.ended() {
		return nil
	}
	at = at.down(token)
	switch {
	case r.kind.primitive() && w.kind.primitive():
		return c.primitives(at, r, w)
	case r.kind.primitive() && !w.kind.named() || w.kind.primitive() && !r.kind.named():
		// Such a node occurs once in its schema, so a memo entry would never be used again.
		return c.calculate(at, r, w)
	}
	key := pair{r, w}
	if known, ok := c.memo[key]; ok {
		return known
	}
	c.memo[key] = nil // compatible until a problem is found
	c.depth++
	result := c.calculate(at, r, w)
	c.depth--
	if result != nil {
		c.memo[key] = result
	}
	return result
}

func (c *checker) ended() bool { return c.fatal != nil || c.err != nil }

func (c *checker) stop(i Incompatibility) {
	if c.fatal == nil {
		c.fatal = &i
	}
}

// primitives compares two primitive types. A number can be promoted to a wider type, and
// strings and bytes are interchangeable.
func (c *checker) primitives(at *schemaPath, r, w *node) *outcome {
	ok := r.kind == w.kind ||
		r.kind == kindString && w.kind == kindBytes ||
		r.kind == kindBytes && w.kind == kindString ||
		w.kind >= kindInt && w.kind < r.kind && r.kind <= kindDouble
	if ok {
		return nil
	}
	return typeMismatch(at, r, w)
}

func (c *checker) calculate(at *schemaPath, r, w *node) *outcome {
	switch {
	case r.kind == kindUnion && w.kind == kindUnion:
		return c.unionOfUnion(at, r, w)
	case w.kind == kindUnion:
		var all *outcome
		for i, b := range w.branches {
			all = all.with(c.compare(at, strconv.Itoa(i), r, b))
		}
		return all
	case r.kind == kindUnion:
		return c.unionOf(at, r, w)
	case r.kind != w.kind:
		return typeMismatch(at, r, w)
	}
	switch r.kind {
	case kindArray:
		return c.compare(at, "items", r.elem, w.elem)
	case kindMap:
		return c.compare(at, "values", r.elem, w.elem)
	}
	c.work += len(r.named.aliases)
	name := checkName(at, r, w)
	switch r.kind {
	case kindFixed:
		return name.with(checkSize(at, r, w))
	case kindEnum:
		c.work += len(w.named.symbols)
		return name.with(checkSymbols(at, r, w))
	default:
		return name.with(c.fields(at, r, w))
	}
}

// unionOfUnion compares two unions: each branch of the writer must be readable.
func (c *checker) unionOfUnion(at *schemaPath, r, w *node) *outcome {
	var all *outcome
	for i, b := range w.branches {
		// As in Java, only the branch is reported, not the problems inside it.
		if c.compare(nil, "", r, b) != nil {
			all = all.with(missingBranch(at.down(strconv.Itoa(i)), r, b))
		}
	}
	return all
}

// unionOf compares a reader's union with another type: one of its branches must be able to
// read it.
func (c *checker) unionOf(at *schemaPath, r, w *node) *outcome {
	for _, b := range c.candidates(r, w) {
		if c.compare(nil, "", b, w) == nil {
			return nil
		}
	}
	return missingBranch(at, r, w)
}

// fields compares the fields of two records: each field of the reader needs a field of the
// writer or a default.
func (c *checker) fields(at *schemaPath, r, w *node) *outcome {
	var all *outcome
	below := at.down("fields")
	for _, f := range r.named.fields {
		here := below.down(strconv.Itoa(f.pos))
		from := c.writerField(f, w)
		switch {
		case c.ended():
			return all
		case from != nil:
			all = all.with(c.compare(here, "type", f.node, from.node))
		case f.def != nil:
		case f.node.kind == kindEnum && f.node.named.enumDefault != nil:
			// Quirk: Java compares an enum that has a default with the writer's record,
			// which is a type mismatch.
			all = all.with(c.compare(here, "type", f.node, w))
		default:
			all = all.with(&outcome{kind: ReaderFieldNoDefault, path: here, field: f})
		}
	}
	return all
}

// writerField finds the writer's field for f, by the name or an alias of f. As in Java, the
// check ends if several fields match.
func (c *checker) writerField(f *field, w *node) *field {
	found := w.named.byName[f.name]
	c.work++
	for _, alias := range f.aliases {
		c.work++
		other := w.named.byName[alias]
		if other == nil {
			continue
		}
		if found != nil {
			c.stop(Incompatibility{
				Type: AmbiguousFieldAliases, Path: "/",
				Message: "Reader record field " + f.String() +
					" matches multiple fields in writer record schema " + describeUpTo(w, maxQuotedSchema),
			})
			return nil
		}
		found = other
	}
	return found
}

// checkName compares the names of two named types, without their namespaces, and the aliases
// of the reader with the writer's full name.
func checkName(at *schemaPath, r, w *node) *outcome {
	if nameMatches(r.named, w.named) {
		return nil
	}
	return problem(at.down("name"), NameMismatch, r, w)
}

func nameMatches(r, w *named) bool {
	return r.name.name == w.name.name ||
		slices.ContainsFunc(r.aliases, func(a typeName) bool { return a.alias(r.name) == w.name.full })
}

func checkSize(at *schemaPath, r, w *node) *outcome {
	if r.named.size == w.named.size {
		return nil
	}
	return problem(at.down("size"), FixedSizeMismatch, r, w)
}

// checkSymbols compares two enums. If the reader has a default, it reads missing symbols as
// the default.
func checkSymbols(at *schemaPath, r, w *node) *outcome {
	if r.named.enumDefault != nil || len(missingSymbols(r.named, w.named)) == 0 {
		return nil
	}
	return problem(at.down("symbols"), MissingEnumSymbols, r, w)
}

// missingSymbols returns the symbols of the writer that the reader lacks.
func missingSymbols(r, w *named) []string {
	var missing []string
	for _, s := range w.symbols {
		if _, ok := r.bySymbol[s]; !ok {
			missing = append(missing, s)
		}
	}
	slices.Sort(missing)
	return missing
}

func typeMismatch(at *schemaPath, r, w *node) *outcome { return problem(at, TypeMismatch, r, w) }

func missingBranch(at *schemaPath, r, w *node) *outcome { return problem(at, MissingUnionBranch, r, w) }
