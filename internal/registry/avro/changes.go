package avro

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"freshet/internal/registry/jsontree"
)

// Change is one difference between two schemas.
type Change struct {
	Type       string // for example FIELD_ADDED
	Path       string // names from the root: fields by name, [] for items, {} for values
	Text       string // a description
	Compatible bool   // the new schema can read data of the old one
}

// differ compares two schemas and records every difference, including those that do not
// affect readers. A change is incompatible if Check reports a problem at its path.
type differ struct {
	seen     map[pairOfNodes]bool // pairs of named types that were compared
	problems []Incompatibility
	changes  []Change
	report   func(steps int) error
	depth    int
	work     int
	spent    int // part of work that was reported
	err      error
}

type pairOfNodes struct{ old, next *node }

// Changes lists the differences between old and next, up to its limits. It reports its steps
// to spend, as Check does.
func Changes(old, next *Schema, spend func(steps int) error) ([]Change, error) {
	problems, err := Check(next, old, spend)
	if err != nil {
		return nil, err
	}
	d := &differ{seen: map[pairOfNodes]bool{}, problems: problems, report: spend}
	d.compare("", "/", old.root, next.root)
	return d.changes, d.err
}

func pointer(at, token string) string { return strings.TrimSuffix(at, "/") + "/" + token }

// addChange adds a change. place is the path at which Check would report a problem with it, empty
// for a change that does not affect readers.
func (d *differ) addChange(kind, path, location, format string, args ...any) {
	if len(d.changes) == maxChanges || d.err != nil {
		return
	}
	if location != "" {
		d.spend(len(d.problems))
	}
	path = cmp.Or(path, "/")
	change := Change{Type: kind, Path: path, Text: fmt.Sprintf(format, args...), Compatible: true}
	if location != "" {
		change.Compatible = !slices.ContainsFunc(d.problems,
			func(p Incompatibility) bool { return concerns(p, location) })
	}
	d.changes = append(d.changes, change)
}

// concerns reports whether a problem is at a path, below it, or is a missing union branch
// above it: Check reports no details inside a union branch.
func concerns(p Incompatibility, location string) bool {
	below := func(a, b string) bool { return strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/") }
	return p.Path == location || below(p.Path, location) || p.Type == MissingUnionBranch && below(location, p.Path)
}

// exhausted reports whether a limit is reached. Paths are copied at every step, so their
// lengths count as work.
func (d *differ) exhausted(path, at string) bool {
	d.spend(1 + (len(path)+len(at))/64)
	return d.err != nil || d.work > maxCheckWork || d.depth > maxCheckDepth || len(d.seen) > maxCheckPairs
}

// spend counts work, and reports it every spendEvery steps.
func (d *differ) spend(work int) {
	d.work += work
	if d.report != nil && d.work-d.spent >= spendEvery && d.err == nil {
		d.err = d.report(d.work - d.spent)
		d.spent = d.work
	}
}

// compare records the differences between two types. path is their path by names, at is the
// path that Check uses for them.
func (d *differ) compare(path, at string, old, next *node) {
	if d.exhausted(path, at) {
		return
	}
	if old.kind != next.kind {
		d.addChange("TYPE_CHANGED", path, at, "%s became %s", old.label(), next.label())
		return
	}
	if old.kind.named() {
		pair := pairOfNodes{old, next}
		if d.seen[pair] {
			return
		}
		d.seen[pair] = true
		d.named(path, at, old.named, next.named)
	}
	if a, b := old.propText("logicalType"), next.propText("logicalType"); a != b {
		d.addChange("LOGICAL_TYPE_CHANGED", path, "", "logical type %q became %q", a, b)
	}
	d.depth++
	switch old.kind {
	case kindRecord:
		d.fields(path, at, old.named, next.named)
	case kindEnum:
		d.symbols(path, at, old.named, next.named)
	case kindFixed:
		if a, b := old.named.size, next.named.size; a != b {
			d.addChange("SIZE_CHANGED", path, pointer(at, "size"), "size %d became %d", a, b)
		}
	case kindArray:
		d.compare(path+"[]", pointer(at, "items"), old.elem, next.elem)
	case kindMap:
		d.compare(path+"{}", pointer(at, "values"), old.elem, next.elem)
	case kindUnion:
		d.branches(path, at, old.branches, next.branches)
	}
	d.depth--
}

// label describes a type by its kind and its name, if it has one.
func (n *node) label() string {
	if n.kind.named() {
		return n.kind.String() + " " + n.named.name.name
	}
	return n.kind.String()
}

func (d *differ) named(path, at string, old, next *named) {
	if a, b := old.name.name, next.name.name; a != b {
		d.addChange("NAME_CHANGED", path, pointer(at, "name"), "%s became %s", a, b)
	}
	if textOrEmpty(old.doc) != textOrEmpty(next.doc) {
		d.addChange("DOC_CHANGED", path, "", "documentation changed")
	}
	if a, b := aliasList(old), aliasList(next); a != b {
		d.addChange("ALIASES_CHANGED", path, "", "aliases %s became %s", a, b)
	}
}

func textOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// aliasList prints the aliases of a type in their normalized order.
func aliasList(t *named) string {
	if len(t.aliases) == 0 {
		return "[]"
	}
	p := printer{Writer: newWriter(maxPrintedBytes), normalize: true}
	p.typeAliases(t)
	return shortenTo(strings.TrimPrefix(string(p.Buf), `"aliases":`), maxQuotedChange)
}

func (d *differ) fields(path, at string, old, next *named) {
	for i, f := range next.fields {
		where, location := pointer(path, f.name), pointer(at, fmt.Sprintf("fields/%d", i))
		before := old.byName[f.name]
		switch {
		case before != nil:
			d.field(where, location, before, f)
		case f.def != nil:
			d.addChange("FIELD_ADDED", where, "", "field %s of type %s was added, with a default", f.name,
				f.node.label())
		default:
			d.addChange("FIELD_ADDED", where, location, "field %s of type %s was added, without a default", f.name,
				f.node.label())
		}
	}
	for _, f := range old.fields {
		if next.byName[f.name] == nil {
			d.addChange("FIELD_REMOVED", pointer(path, f.name), "", "field %s was removed", f.name)
		}
	}
}

func (d *differ) field(where, location string, old, next *field) {
	if a, b := defaultText(old), defaultText(next); a != b && !sameNumber(old.def, next.def) {
		d.addChange("DEFAULT_CHANGED", where, "", "default %s became %s", shortenTo(a, maxQuotedChange),
			shortenTo(b, maxQuotedChange))
	}
	if textOrEmpty(old.doc) != textOrEmpty(next.doc) {
		d.addChange("DOC_CHANGED", where, "", "documentation changed")
	}
	d.compare(where, pointer(location, "type"), old.node, next.node)
}

// sameNumber reports whether two defaults are the same number, even of different types.
func sameNumber(a, b *jsontree.Value) bool {
	if a == nil || b == nil || a.Kind != jsontree.Number || b.Kind != jsontree.Number {
		return false
	}
	if fits64(a) && fits64(b) {
		return a.Text == b.Text
	}
	return floatOf(a) == floatOf(b)
}

// defaultText prints the default of a field in the form of its type.
func defaultText(f *field) string {
	if f.def == nil {
		return "none"
	}
	p := printer{Writer: newWriter(maxPrintedBytes), normalize: true}
	p.typedValue(f.def, f.node)
	return string(p.Buf)
}

func (d *differ) symbols(path, at string, old, next *named) {
	for _, s := range next.symbols {
		if _, known := old.bySymbol[s]; !known {
			d.addChange("SYMBOL_ADDED", path, "", "symbol %s was added", s)
		}
	}
	for _, s := range old.symbols {
		if _, known := next.bySymbol[s]; !known {
			d.addChange("SYMBOL_REMOVED", path, pointer(at, "symbols"), "symbol %s was removed", s)
		}
	}
	if a, b := textOrEmpty(old.enumDefault), textOrEmpty(next.enumDefault); a != b {
		d.addChange("DEFAULT_CHANGED", path, "", "default %q became %q", a, b)
	}
}

// branches pairs the branches of two unions by kind and name.
func (d *differ) branches(path, at string, old, next []*node) {
	after := map[string][]*node{} // branches of next without a partner yet, in their order
	for _, branch := range next {
		after[branch.label()] = append(after[branch.label()], branch)
	}
	for i, branch := range old {
		label, location := branch.label(), pointer(at, fmt.Sprint(i))
		if len(after[label]) == 0 {
			d.addChange("BRANCH_REMOVED", path, location, "%s was removed from the union", label)
			continue
		}
		partner := after[label][0]
		after[label] = after[label][1:]
		d.compare(path, location, branch, partner)
	}
	for _, branch := range next {
		if slices.Contains(after[branch.label()], branch) {
			d.addChange("BRANCH_ADDED", path, "", "%s was added to the union", branch.label())
		}
	}
}
