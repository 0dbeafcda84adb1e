package avro

import (
	"fmt"
	"strings"

	"freshet/internal/registry/jsontree"
)

// kind is the type of a schema node.
type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindArray
	kindMap
	kindUnion
	kindFixed
	kindEnum
	kindRecord
)

var kindNames = [...]string{
	kindNull:    "null",
	kindBoolean: "boolean",
	kindInt:     "int",
	kindLong:    "long",
	kindFloat:   "float",
	kindDouble:  "double",
	kindBytes:   "bytes",
	kindString:  "string",
	kindArray:   "array",
	kindMap:     "map",
	kindUnion:   "union",
	kindFixed:   "fixed",
	kindEnum:    "enum",
	kindRecord:  "record",
}

var kindsByName = func() map[string]kind {
	m := make(map[string]kind, len(kindNames))
	for k, name := range kindNames {
		m[name] = kind(k)
	}
	return m
}()

func (k kind) String() string { return kindNames[k] }

// upper returns the name of Java's enum constant.
func (k kind) upper() string { return strings.ToUpper(kindNames[k]) }

func (k kind) primitive() bool { return k <= kindString }

func (k kind) named() bool { return k >= kindFixed }

// primitiveKind returns the primitive type of that name.
func primitiveKind(name string) (kind, bool) {
	k, ok := kindsByName[name]
	return k, ok && k.primitive()
}

// node is one schema. Every schema in a text has its own node, except that all uses of a
// named type share the node of its definition. The checker caches results by pairs of nodes,
// as Java does by pairs of objects.
type node struct {
	kind     kind
	props    []prop
	elem     *node   // items of an array, values of a map
	branches []*node // of a union
	nullable bool    // of a union: it has a null branch
	named    *named  // of a record, enum or fixed
}

// prop is a property without a meaning in Avro, or of a logical type.
type prop struct {
	key   string
	value *jsontree.Value
}

// named has the attributes of named types.
type named struct {
	name    typeName
	doc     *string
	aliases []typeName

	fields      []*field // of a record
	byName      map[string]*field
	isError     bool
	sizedFields []*node // types of the fields that take bytes; see measure

	symbols     []string // of an enum
	bySymbol    map[string]int
	enumDefault *string

	size int // of a fixed
}

// field is a field of a record.
type field struct {
	name    string
	pos     int
	node    *node
	doc     *string
	def     *jsontree.Value // the default, or nil
	order   order
	aliases []string
	props   []prop
}

// String describes a field in error messages. As in Java, a type that is not resolved yet
// appears as a record.
func (f *field) String() string {
	k := kindRecord
	if f.node != nil {
		k = f.node.kind
	}
	return fmt.Sprintf("%s type:%s pos:%d", shorten(f.name), k.upper(), f.pos)
}

// order is the sort order of a field.
type order uint8

const (
	ascending order = iota
	descending
	ignore
)

var orderNames = [...]string{ascending: "ascending", descending: "descending", ignore: "ignore"}

// unionKey returns the key that must be unique among the branches of a union.
func (n *node) unionKey() string {
	if n.kind.named() {
		return n.named.name.full
	}
	return n.kind.String()
}

// prop returns a property, or nil.
func (n *node) prop(key string) *jsontree.Value {
	for _, p := range n.props {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// propText returns a property that is a string, or "".
func (n *node) propText(key string) string {
	if p := n.prop(key); p != nil && p.Kind == jsontree.String {
		return p.Text
	}
	return ""
}
