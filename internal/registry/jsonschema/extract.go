package jsonschema

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"freshet/internal/registry/jsontree"
)

// maxNodes bounds the number of nodes of one schema with its references.
const maxNodes = 4 << 20

// builder converts schemas to nodes. It uses a queue instead of recursion, because
// references can make the graph arbitrarily deep.
type builder struct {
	nodes map[*jsontree.Value]*node
	metas map[string]*node
	queue []work
	refs  []*node
}

type work struct {
	node *node
	from site
}

// buildModel builds the model of a document whose references are all resolved.
func buildModel(doc *document) (*node, error) {
	b := &builder{nodes: map[*jsontree.Value]*node{}, metas: map[string]*node{}}
	root := b.at(site{doc: doc, value: doc.root})
	began := time.Now()
	for filled := 1; len(b.queue) > 0; filled++ {
		if filled%spendEvery == 0 {
			if err := doc.spent(began); err != nil {
				return nil, err
			}
			began = time.Now()
		}
		next := b.queue[len(b.queue)-1]
		b.queue = b.queue[:len(b.queue)-1]
		if err := b.fill(next.node, next.from); err != nil {
			return nil, err
		}
		if len(b.nodes) > maxNodes {
			return nil, fmt.Errorf("schema and its references have more than %d parts", maxNodes)
		}
	}
	if err := b.checkLoops(); err != nil {
		return nil, err
	}
	b.followRefs()
	return root, nil
}

// at returns the node of the schema at s. A new node is queued to be filled.
func (b *builder) at(s site) *node {
	if s.meta != "" {
		n, ok := b.metas[s.meta]
		if !ok {
			n = &node{kind: kindMeta, body: body{other: &otherBody{address: s.meta}}}
			b.metas[s.meta] = n
		}
		return n
	}
	n, ok := b.nodes[s.value]
	if !ok {
		n = &node{draft: s.doc.draft, src: s.value, digest: s.doc.sums.of(s.value)}
		b.nodes[s.value] = n
		b.queue = append(b.queue, work{n, s})
	}
	return n
}

// followRefs determines the end of each chain of references. checkLoops has checked that
// each chain ends.
func (b *builder) followRefs() {
	for _, n := range b.refs {
		first := n.ref
		if first.target.kind != kindRef {
			first.end = first.target
			continue
		}
		chain := []*refBody{first}
		end := first.target
		for end.kind == kindRef {
			link := end.ref
			if link.end != nil {
				end = link.end
				break
			}
			chain = append(chain, link)
			end = link.target
		}
		for _, link := range chain {
			link.end = end
		}
	}
}

// facets converts one schema object. Each extractor handles its keywords, in the order of
// docs/spec/registry.md#json-model. The keyword families that no type has used become
// separate facets.
type facets struct {
	b     *builder
	from  site
	v     *jsontree.Value
	nodes []*node
	used  [len(families)]bool
}

func (f *facets) add(k kind, says body) {
	n := &node{kind: k, draft: f.from.doc.draft, body: says}
	if k == kindRef {
		f.b.refs = append(f.b.refs, n)
	}
	f.nodes = append(f.nodes, n)
}

// hashed returns a value of this schema with its hash.
func (f *facets) hashed(v *jsontree.Value) *hashed {
	return &hashed{value: v, hash: f.from.doc.sums.of(v).hash}
}

// child returns the node of a schema directly inside this one.
func (f *facets) child(v *jsontree.Value) *node {
	return f.b.at(site{doc: f.from.doc, value: v, base: f.from.inner()})
}

func (b *builder) fill(n *node, s site) error {
	v := s.value
	if v.Kind != jsontree.Object {
		n.kind = kindEmpty
		if v.Kind == jsontree.False {
			n.kind = kindFalse
		}
		return nil
	}
	f := &facets{b: b, from: s, v: v}
	if err := f.references(); err != nil {
		return err
	}
	// Before 2019-09 the other keywords next to a $ref have no effect.
	if len(f.nodes) == 0 || s.doc.draft.modern() {
		f.combinations()
		f.types()
		f.untyped()
	}
	n.meta = f.about()
	switch len(f.nodes) {
	case 0:
		n.kind = kindEmpty
	case 1:
		n.kind, n.body = f.nodes[0].kind, f.nodes[0].body
	default:
		n.kind = kindCombined
		n.combined = &combinedBody{criterion: allOf, branches: f.nodes, unique: positions(len(f.nodes))}
	}
	return nil
}

func (f *facets) about() *meta {
	var m meta
	if !f.from.doc.draft.modern() {
		m.id, _ = f.v.GetText(f.from.doc.draft.idKeyword())
	}
	m.title, _ = f.v.GetText("title")
	m.description, _ = f.v.GetText("description")
	if fallback := f.v.Get("default"); fallback != nil {
		m.defaultValue = f.hashed(fallback)
	}
	connect, _ := f.v.GetText("connect.type")
	m.connectBytes = connect == "bytes"
	if m == *noMeta {
		return nil
	}
	return &m
}

func (f *facets) references() error {
	keywords := []string{"$ref"}
	if f.from.doc.draft.modern() {
		keywords = append(keywords, "$dynamicRef", "$recursiveRef")
	}
	for _, keyword := range keywords {
		ref, ok := f.v.GetText(keyword)
		if !ok {
			continue
		}
		target, err := f.from.resolve(ref)
		if err != nil {
			return err
		}
		f.add(kindRef, body{ref: &refBody{target: f.b.at(target)}})
	}
	return nil
}

// combinations handles enum, allOf, anyOf, oneOf, not and const.
func (f *facets) combinations() {
	if e := f.v.Get("enum"); e != nil && e.Kind == jsontree.Array {
		values := make([]*hashed, 0, e.Len())
		for _, item := range e.Elements() {
			values = append(values, f.hashed(item))
		}
		f.add(kindEnum, body{other: &otherBody{values: values}})
	}
	for c, keyword := range criterionNames {
		list := f.v.Get(keyword)
		if list == nil || list.Kind != jsontree.Array {
			continue
		}
		combined := &combinedBody{criterion: criterion(c)}
		seen := map[uint64]bool{}
		for i, item := range list.Elements() {
			combined.branches = append(combined.branches, f.child(item))
			if hash := f.from.doc.sums.of(item).hash; !seen[hash] {
				seen[hash] = true
				combined.unique = append(combined.unique, i)
			}
		}
		f.add(kindCombined, body{combined: combined})
	}
	if not := f.v.Get("not"); not != nil {
		f.add(kindNot, body{not: f.child(not)})
	}
	if c := f.v.Get("const"); c != nil && f.from.doc.draft > draft4 {
		f.add(kindConst, body{other: &otherBody{values: []*hashed{f.hashed(c)}}})
	}
}

// types handles type and the keywords of the families of these types.
func (f *facets) types() {
	t := f.v.Get("type")
	switch {
	case t == nil:
	case t.Kind == jsontree.String:
		f.typed(t.Text)
	case t.Kind == jsontree.Array:
		inner := &facets{b: f.b, from: f.from, v: f.v}
		for _, item := range t.Elements() {
			inner.typed(item.Text)
		}
		f.used = inner.used
		f.add(kindCombined, body{combined: &combinedBody{
			criterion: anyOf, branches: inner.nodes, unique: positions(len(inner.nodes)),
		}})
	}
}

func (f *facets) typed(name string) {
	switch name {
	case "string":
		f.family(stringFamily)
	case "integer", "number":
		f.family(numberFamily)
		f.nodes[len(f.nodes)-1].number.integer = name == "integer"
	case "boolean":
		f.add(kindBoolean, body{})
	case "null":
		f.add(kindNull, body{})
	case "array":
		f.family(arrayFamily)
	case "object":
		f.family(objectFamily)
	}
}

// untyped adds facets for the remaining keyword families, also if the schema has a type:
// {"type": "string", "minimum": 1} has a string and a number facet.
func (f *facets) untyped() {
	for _, fam := range []family{arrayFamily, objectFamily, numberFamily, stringFamily} {
		if !f.used[fam] && f.has(fam) {
			f.family(fam)
		}
	}
	conditional := f.v.Get("if") != nil
	if f.from.doc.draft == draft7 {
		conditional = conditional || f.v.Get("then") != nil || f.v.Get("else") != nil
	}
	if conditional && f.from.doc.draft >= draft7 {
		f.add(kindConditional, body{})
	}
}

func positions(n int) []int {
	unique := make([]int, n)
	for i := range unique {
		unique[i] = i
	}
	return unique
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
