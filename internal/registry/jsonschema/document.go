package jsonschema

import (
	"fmt"
	"strings"
	"time"

	"freshet/internal/registry/jsontree"
)

// document is one parsed text with the names that references can use.
type document struct {
	root  *jsontree.Value
	sums  digests
	draft draft
	base  string // the $id of the root without its fragment, or ""
	refs  []Reference

	names
	links   []link // every reference keyword in a schema
	targets map[linkKey]site
	regexps map[string]*pattern
	spent   func(began time.Time) error // reports elapsed time as steps
}

// site is a schema with its context. base is the base URI of the surrounding schema, before
// the schema's own $id is applied.
type site struct {
	doc   *document
	value *jsontree.Value
	base  string
	meta  string // the URI of a published metaschema; the other fields are then empty
}

// link is a reference keyword with its location. linkKey has everything that determines the
// target of a link within one document.
type (
	link struct {
		from site
		ref  string
	}
	linkKey struct{ base, ref string }
)

// keywordKind is the kind of value that a keyword has.
type keywordKind uint8

const (
	noSchema    keywordKind = iota
	oneSchema               // the value is a schema
	schemaList              // an array of schemas
	schemaMap               // an object whose members are schemas
	oneOrList               // items: a schema or an array of them
	mapOrNames              // dependencies: schemas or arrays of names
	plainValues             // enum, const, default, examples: values, not schemas
)

var keywordKinds = map[string]keywordKind{
	"additionalItems":       oneSchema,
	"additionalProperties":  oneSchema,
	"contains":              oneSchema,
	"contentSchema":         oneSchema,
	"else":                  oneSchema,
	"if":                    oneSchema,
	"not":                   oneSchema,
	"propertyNames":         oneSchema,
	"then":                  oneSchema,
	"unevaluatedItems":      oneSchema,
	"unevaluatedProperties": oneSchema,
	"allOf":                 schemaList,
	"anyOf":                 schemaList,
	"oneOf":                 schemaList,
	"prefixItems":           schemaList,
	"$defs":                 schemaMap,
	"definitions":           schemaMap,
	"dependentSchemas":      schemaMap,
	"patternProperties":     schemaMap,
	"properties":            schemaMap,
	"items":                 oneOrList,
	"dependencies":          mapOrNames,
	"const":                 plainValues,
	"default":               plainValues,
	"enum":                  plainValues,
	"examples":              plainValues,
}

func newDocument(root *jsontree.Value, sums digests, refs []Reference, spend func(steps int) error) (*document, error) {
	d := &document{
		root:    root,
		sums:    sums,
		draft:   draftOf(root),
		refs:    refs,
		names:   names{ids: map[string]site{}, anchors: map[string]site{}},
		targets: map[linkKey]site{},
		regexps: map[string]*pattern{},
		spent: func(began time.Time) error {
			if spend == nil {
				return nil
			}
			return spend(1 + int(time.Since(began)/stepTime))
		},
	}
	if id, ok := root.GetText(d.draft.idKeyword()); ok {
		name, _, _ := strings.Cut(id, "#")
		d.base = name
	}
	d.ids[d.base] = site{doc: d, value: root}
	tentative := &names{ids: map[string]site{}, anchors: map[string]site{}}
	if err := d.scan(root, "", oneSchema, tentative); err != nil {
		return nil, err
	}
	for id, s := range tentative.ids {
		addName(d.ids, id, s)
	}
	for anchor, s := range tentative.anchors {
		addName(d.anchors, anchor, s)
	}
	return d, nil
}

// names are the names of schemas. Tentative names are those of objects under unknown
// keywords, which may be schemas; names of real schemas take precedence.
type names struct {
	ids     map[string]site // absolute URIs, and URIs as written
	anchors map[string]site // absolute URI + "#" + anchor
}

func addName(to map[string]site, name string, s site) {
	if _, taken := to[name]; !taken {
		to[name] = s
	}
}

// scan walks through the whole text. It records names everywhere, because a JSON pointer can
// lead anywhere, but links and patterns only in schemas. The depth of the text is bounded,
// so the recursion is too.
func (d *document) scan(v *jsontree.Value, base string, as keywordKind, tentative *names) error {
	switch {
	case as == plainValues:
		return nil
	case v.Kind == jsontree.Array:
		inner := noSchema
		if as == schemaList || as == oneOrList {
			inner = oneSchema
		}
		for _, item := range v.Elements() {
			if err := d.scan(item, base, inner, tentative); err != nil {
				return err
			}
		}
		return nil
	case v.Kind != jsontree.Object:
		return nil
	case as == schemaMap || as == mapOrNames:
		for _, item := range v.Members() {
			if err := d.scan(item, base, oneSchema, tentative); err != nil {
				return err
			}
		}
		return nil
	}
	here := site{doc: d, value: v, base: base}
	inner := here.inner()
	isSchema := as == oneSchema || as == oneOrList
	if isSchema {
		d.names.add(here)
		if err := d.collect(here); err != nil {
			return err
		}
	} else {
		tentative.add(here)
	}
	for name, item := range v.Members() {
		under := noSchema
		if isSchema {
			under = keywordKinds[name]
		}
		if err := d.scan(item, inner, under, tentative); err != nil {
			return err
		}
	}
	return nil
}

// add records the names of the object at s.
func (n *names) add(s site) {
	inner := s.inner()
	if id, ok := s.ownID(); ok && s.value != s.doc.root {
		name, fragment, _ := strings.Cut(id, "#")
		if name != "" {
			addName(n.ids, inner, s)
			addName(n.ids, id, s)
		}
		if fragment != "" {
			addName(n.anchors, inner+"#"+fragment, s)
		}
	}
	if s.doc.draft.modern() {
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if anchor, ok := s.value.GetText(keyword); ok {
				addName(n.anchors, inner+"#"+anchor, s)
			}
		}
	}
}

// collect records the links of the schema at s and checks its patterns.
func (d *document) collect(s site) error {
	for key, item := range s.value.Members() {
		switch {
		case isReferenceKeyword(key) && item.Kind == jsontree.String:
			if !d.draft.modern() && key != "$ref" {
				continue
			}
			d.links = append(d.links, link{from: s, ref: item.Text})
		case key == "pattern" && item.Kind == jsontree.String:
			if err := d.addPattern(item.Text); err != nil {
				return err
			}
		case key == "patternProperties" && item.Kind == jsontree.Object:
			for text := range item.Members() {
				if err := d.addPattern(text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *document) addPattern(text string) error {
	if _, known := d.regexps[text]; known {
		return nil
	}
	began := time.Now()
	p, err := compilePattern(text)
	if err != nil {
		return err
	}
	d.regexps[text] = p
	// The cost of a pattern does not follow from its length, so its time is reported.
	return d.spent(began)
}

// pattern returns the compiled form of an expression in d. It is nil for an expression
// outside of schemas that does not compile.
func (d *document) pattern(text string) *pattern {
	if p, ok := d.regexps[text]; ok {
		return p
	}
	p, _ := compilePattern(text)
	return p
}

// inner returns the base URI inside the schema at s: its own $id resolved against s.base.
func (s site) inner() string {
	if s.value == s.doc.root {
		return s.doc.base
	}
	id, ok := s.ownID()
	if !ok {
		return s.base
	}
	name, _, _ := strings.Cut(id, "#")
	if name == "" {
		return s.base
	}
	return join(s.base, name)
}

// ownID returns the $id of the schema at s. Before 2019-09 a $ref makes all other keywords
// of its schema void, including $id.
func (s site) ownID() (string, bool) {
	if !s.doc.draft.modern() && s.value.Get("$ref") != nil {
		return "", false
	}
	return s.value.GetText(s.doc.draft.idKeyword())
}

// checkLinks resolves every reference once and caches the result, so that a parsed schema
// has no dangling references.
func (d *document) checkLinks() error {
	for _, l := range d.links {
		key := linkKey{l.from.inner(), l.ref}
		if _, known := d.targets[key]; known {
			continue
		}
		began := time.Now()
		target, err := l.from.resolve(l.ref)
		if err != nil {
			return err
		}
		d.targets[key] = target
		if err := d.spent(began); err != nil { // a lookup may have searched all references
			return err
		}
	}
	d.links = nil
	return nil
}

// unresolved returns the error of a reference without a target.
func unresolved(ref, why string) error {
	return fmt.Errorf("unresolved reference %q: %s", clip(ref, 300), why)
}
