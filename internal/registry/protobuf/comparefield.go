package protobuf

import (
	"fmt"
	"slices"
	"strings"
)

// member is a field with its oneof, which is nil for a field at the top level of its message.
// Groups are not compared, so they are not members.
type member struct {
	field *field
	oneof *oneof
}

func members(m *message) ([]int64, map[int64]member) {
	var tags []int64
	byTag := map[int64]member{}
	add := func(f *field, o *oneof) {
		if _, again := byTag[f.tag]; !again {
			tags = append(tags, f.tag)
		}
		byTag[f.tag] = member{f, o}
	}
	for _, f := range m.fields {
		add(f, nil)
	}
	for _, o := range m.oneofs {
		for _, f := range o.fields {
			add(f, o)
		}
	}
	return tags, byTag
}

// fields compares the fields of two messages: first the fields that moved into oneofs, then
// the oneofs themselves, then the fields with the same tag.
func (c *comparer) fields(was, now scoped, old, new *message) {
	oldTags, oldAt := members(old)
	newTags, newAt := members(new)
	if !c.spend(len(oldTags) + len(newTags)) {
		return
	}
	for _, o := range new.oneofs {
		c.movedInto(o, oldAt)
	}
	survives := c.oneofs(old, new)
	for _, tag := range sortedUnion(oldTags, newTags) {
		before, had := oldAt[tag]
		after, has := newAt[tag]
		switch {
		case !has:
			c.removed(before, tag, survives, newAt)
		case !had:
			c.added(after, tag)
		case after.oneof != nil:
			c.at(after.oneof.name, func() {
				c.atTag(tag, func() { c.field(was, now, before.field, after.field) })
			})
		default:
			c.atTag(tag, func() {
				if before.oneof != nil {
					c.add(oneofFieldMovedToTop)
					if after.field.label == labelRequired {
						c.add(requiredFieldAdded) // old data may have another member of the oneof, or none
					}
				}
				c.field(was, now, before.field, after.field)
			})
		}
	}
}

// movedInto reports a oneof whose fields did not exclude each other before. Its old fields
// must have been in one oneof together, or be a single field of the top level.
func (c *comparer) movedInto(o *oneof, oldAt map[int64]member) {
	topLevel := 0
	origins := map[*oneof]bool{}
	for _, f := range o.fields {
		before, had := oldAt[f.tag]
		switch {
		case !had:
		case before.oneof == nil:
			topLevel++
		default:
			origins[before.oneof] = true
		}
	}
	if topLevel+len(origins) < 2 {
		return
	}
	c.at(o.name, func() {
		if topLevel > 1 {
			c.add(fieldsMovedToOneof)
		} else {
			c.add(fieldMovedToOldOneof)
		}
	})
}

// oneofs reports added and removed oneofs, and returns the names that both messages have.
func (c *comparer) oneofs(old, new *message) map[string]bool {
	oldNames, oldAt := indexed(old.oneofs, func(o *oneof) string { return o.name })
	newNames, newAt := indexed(new.oneofs, func(o *oneof) string { return o.name })
	stayed := map[string]bool{}
	for _, name := range sortedUnion(oldNames, newNames) {
		_, had := oldAt[name]
		_, has := newAt[name]
		switch {
		case !has:
			c.at(name, func() { c.add(oneofRemoved) })
		case !had:
			c.at(name, func() { c.add(oneofAdded) })
		default:
			stayed[name] = true
		}
	}
	return stayed
}

func (c *comparer) removed(f member, tag int64, survives map[string]bool, newAt map[int64]member) {
	if f.oneof == nil {
		c.atTag(tag, func() {
			if f.field.label == labelRequired {
				c.add(requiredFieldRemoved)
			} else {
				c.add(fieldRemoved)
			}
		})
		return
	}
	if !survives[f.oneof.name] && !anyLeft(f.oneof, newAt) {
		return // ONEOF_REMOVED covers a oneof that was removed with all its fields
	}
	c.at(f.oneof.name, func() {
		c.atTag(tag, func() { c.add(oneofFieldRemoved) })
	})
}

// anyLeft reports whether the new message has a field of an old oneof.
func anyLeft(o *oneof, newAt map[int64]member) bool {
	return slices.ContainsFunc(o.fields, func(f *field) bool { _, left := newAt[f.tag]; return left })
}

func (c *comparer) added(f member, tag int64) {
	if f.oneof != nil {
		c.at(f.oneof.name, func() {
			c.atTag(tag, func() { c.add(oneofFieldAdded) })
		})
		return
	}
	c.atTag(tag, func() {
		if f.field.label == labelRequired {
			c.add(requiredFieldAdded)
		} else {
			c.add(fieldAdded)
		}
	})
}

func (c *comparer) field(was, now scoped, old, new *field) {
	if old.name != new.name {
		c.add(fieldNameChanged)
	}
	c.types(fieldTypeOf(was, old), fieldTypeOf(now, new), old.label, new.label)
}

// kind is the kind of a field's type.
type kind uint8

const (
	kindScalar kind = iota // including enums
	kindMessage
	kindMap
)

// fieldType is the resolved type of a field.
type fieldType struct {
	kind   kind
	scalar string
	// named is the message, or nil if it does not exist, which an unchecked schema allows;
	// name is its full name in both cases.
	named *symbol
	name  string
	scope scoped
	key   string // key type of a map; the other fields then describe the value type
}

func fieldTypeOf(scope scoped, f *field) fieldType {
	t := typeIn(scope, f.typ)
	if f.isMap() {
		t.kind, t.key = kindMap, f.key
	}
	return t
}

func typeIn(scope scoped, name string) fieldType {
	if scalarTypes[name] {
		return fieldType{scalar: name, scope: scope, name: name}
	}
	s := scope.file.resolveType(scope.name, name)
	switch {
	case s == nil:
		return fieldType{kind: kindMessage, name: strings.TrimPrefix(name, "."), scope: scope}
	case s.enum != nil:
		return fieldType{scalar: "enum", scope: scope, name: s.name}
	default:
		return fieldType{kind: kindMessage, named: s, name: s.name, scope: scope}
	}
}

// localName returns the name without the package of the file that declares it.
func (t fieldType) localName() string {
	if t.named != nil {
		return t.named.localName()
	}
	return strings.TrimPrefix(t.name, qualify(t.scope.file.model.pkg, ""))
}

// wireFormats maps scalars to wire formats. Scalars of the same format can be exchanged.
var wireFormats = map[string]string{
	"int32": "varint", "int64": "varint", "uint32": "varint", "uint64": "varint", "bool": "varint", "enum": "varint",
	"sint32": "zigzag", "sint64": "zigzag",
	"string": "text", "bytes": "text",
	"fixed32": "fixed32", "sfixed32": "fixed32",
	"fixed64": "fixed64", "sfixed64": "fixed64",
	"float": "float", "double": "double",
}

func (c *comparer) types(old, new fieldType, oldLabel, newLabel label) {
	if old.kind != new.kind {
		c.add(fieldKindChanged)
		return
	}
	switch old.kind {
	case kindMap:
		c.types(typeIn(old.scope, old.key), typeIn(new.scope, new.key), labelNone, labelNone)
		c.types(mapValue(old), mapValue(new), labelNone, labelNone)
	case kindMessage:
		c.namedTypes(old, new)
	default:
		c.scalars(old.scalar, new.scalar, oldLabel, newLabel)
	}
}

func mapValue(t fieldType) fieldType {
	t.key, t.kind = "", kindScalar
	if t.scalar == "" {
		t.kind = kindMessage
	}
	return t
}

func (c *comparer) scalars(old, new string, oldLabel, newLabel label) {
	group := wireFormats[old]
	switch {
	case group != wireFormats[new]:
		c.add(fieldScalarKindChanged)
	case oldLabel == labelNone || newLabel == labelNone || oldLabel == newLabel:
		// An implicit label is not compared.
	case group == "text":
		c.add(fieldStringLabelChanged)
	default:
		c.add(fieldNumericLabelChanged)
	}
}

// namedTypes compares the types of message fields. Types that both schemas declare are
// compared as part of the schemas; a type of a reference is compared here.
func (c *comparer) namedTypes(old, new fieldType) {
	if old.localName() != new.localName() {
		c.add(fieldNamedTypeChanged)
		return
	}
	if old.named == nil || new.named == nil {
		return
	}
	if old.named.file == c.old && new.named.file == c.new || old.named.file.same(new.named.file) {
		return
	}
	if c.depth++; c.depth > maxChain {
		if c.err == nil {
			c.err = fmt.Errorf("%w: referenced messages are nested more than %d deep", ErrTooComplex, maxChain)
		}
		return
	}
	defer func() { c.depth-- }()
	outer := c.path
	c.path = strings.Split(old.localName(), ".")
	c.message(scoped{old.named.file, old.name}, scoped{new.named.file, new.name}, old.named.message, new.named.message)
	c.path = outer
	if c.pairs[[2]*message{old.named.message, new.named.message}] {
		c.add(fieldNamedTypeChanged)
	}
}
