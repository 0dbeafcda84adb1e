package kafkaapi

import (
	"math"
	"sync"
)

// shape is the layout of a structure in one version of a request.
type shape struct {
	fields     []shapeField
	flexible   bool
	brokerTags bool // some of its tagged fields are structures, which only brokers send
}

type shapeField struct {
	kind  fieldKind
	width int    // size of a fixed field, or of the elements of an array
	size  int    // memory of an array element
	elem  *shape // shape of an array element, or of a nullable structure
}

type fieldKind uint8

const (
	fieldFixed          fieldKind = iota
	fieldText                     // bytes after a 16-bit length
	fieldBytes                    // bytes after a 32-bit length
	fieldFixeds                   // array of fixed fields
	fieldTexts                    // array of texts
	fieldStructs                  // array of structures
	fieldNullableStruct           // nullable structure
)

type shapeKey struct{ key, version int16 }

var shapes sync.Map // shapeKey → *shape

// shapeOf returns the shape of a version of a request that requestShapes contains.
func shapeOf(key, version int16) *shape {
	at := shapeKey{key, version}
	if known, ok := shapes.Load(at); ok {
		s, _ := known.(*shape)
		return s
	}
	request := requestShapes[key]
	s := request.fields.at(version, version >= request.flexible)
	s.brokerTags = version >= request.brokerTags
	shapes.Store(at, s)
	return s
}

// requestShape is the layout of all versions of a request.
type requestShape struct {
	name       string
	flexible   int16 // first flexible version, or never
	brokerTags int16 // first version with structures in tagged fields, or never
	fields     fields
}

const never = math.MaxInt16

// fields are the fields of a structure in the order of their encoding.
type fields []versionedField

// versionedField is a field and the versions that have it.
type versionedField struct {
	shapeField
	inner  fields // fields of elem
	first  int16
	before int16 // first version without the field again; 0 means that all later versions have it
}

// at returns the shape of one version.
func (f fields) at(version int16, flexible bool) *shape {
	s := &shape{flexible: flexible}
	for i := range f {
		if version < f[i].first || f[i].before > 0 && version >= f[i].before {
			continue
		}
		field := f[i].shapeField
		if f[i].inner != nil {
			field.elem = f[i].inner.at(version, flexible)
		}
		s.fields = append(s.fields, field)
	}
	return s
}

func (f versionedField) since(version int16) versionedField {
	f.first = version
	return f
}

func (f versionedField) until(version int16) versionedField {
	f.before = version + 1
	return f
}

func fixed(width int) versionedField {
	return versionedField{shapeField: shapeField{kind: fieldFixed, width: width}}
}

func fixeds(width int) versionedField {
	return versionedField{shapeField: shapeField{kind: fieldFixeds, width: width, size: width}}
}

// structs is an array of structures that take size bytes of memory each.
func structs(size int, inner ...versionedField) versionedField {
	return versionedField{shapeField: shapeField{kind: fieldStructs, size: size}, inner: inner}
}

func nullable(inner ...versionedField) versionedField {
	return versionedField{shapeField: shapeField{kind: fieldNullableStruct}, inner: inner}
}
