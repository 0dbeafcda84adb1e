package kafkaapi

import (
	"bytes"
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
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

// shapeOf returns the shape of a version of a request.
func shapeOf(key, version int16) *shape {
	at := shapeKey{key, version}
	if known, ok := shapes.Load(at); ok {
		s, _ := known.(*shape)
		return s
	}
	request := kmsg.RequestForKey(key)
	root := reflect.ValueOf(request).Elem()
	populate(root)
	request.SetVersion(version)
	l := shapeLearner{request: request, base: request.AppendTo(nil)}
	s, _ := l.structure(root)
	shapes.Store(at, s)
	return s
}

// populate gives every array and every nullable structure one element, so that the fields inside
// appear in the encoded form.
func populate(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		// Tagged fields are encoded only if they differ from their defaults.
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "UnknownTags" {
				populate(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			populate(v.Index(0))
		}
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.New(v.Type().Elem()))
			populate(v.Elem())
		}
	}
}

// shapeLearner derives the layout of a request by encoding it. A field whose value changes the bytes is
// present. It is a tagged field if the bytes grow by more than the size of the field.
type shapeLearner struct {
	request kmsg.Request
	base    []byte
}

// growth encodes the request with a changed field and returns by how many bytes it grows, and
// whether the bytes differ.
func (l *shapeLearner) growth(v reflect.Value, changed reflect.Value) (grown int, differs bool) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	v.Set(changed)
	written := l.request.AppendTo(nil)
	v.Set(old)
	return len(written) - len(l.base), !bytes.Equal(written, l.base)
}

// structure derives the shape of a structure. tagged means that some of its fields are tagged
// fields.
func (l *shapeLearner) structure(v reflect.Value) (s *shape, tagged bool) {
	s = &shape{flexible: l.request.IsFlexible()}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name == "UnknownTags" || name == "Version" &&
			v.Addr().Interface() == any(l.request) {
			continue
		}
		f, present, isTag := l.field(v.Field(i))
		switch {
		case isTag:
			tagged = true
			s.brokerTags = s.brokerTags || v.Field(i).Kind() == reflect.Struct
		case present:
			s.fields = append(s.fields, f)
		}
	}
	return s, tagged
}

// field derives the shape of one field.
func (l *shapeLearner) field(v reflect.Value) (f shapeField, present, tagged bool) {
	other := reflect.New(v.Type()).Elem()
	want := 0 // growth of a field that is not tagged
	switch v.Kind() {
	case reflect.Struct:
		_, tagged = l.structure(v)
		return f, false, tagged
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			f.kind = fieldNullableStruct
			f.elem, _ = l.structure(v.Elem())
			_, present = l.growth(v, other)
			return f, present, false
		}
		f.kind, want = fieldText, 1
		x := "x"
		other.Set(reflect.ValueOf(&x))
	case reflect.String:
		f.kind, want = fieldText, 1
		other.SetString("x")
	case reflect.Slice:
		elem := v.Type().Elem()
		f.size = int(elem.Size()) //nolint:gosec // a few bytes
		switch {
		case elem.Kind() == reflect.Struct:
			f.kind = fieldStructs
			f.elem, _ = l.structure(v.Index(0))
			_, present = l.growth(v, other)
			return f, present, false
		case elem.Kind() == reflect.Uint8:
			f.kind, want = fieldBytes, 1
			other.SetBytes([]byte{1})
		case elem.Kind() == reflect.String:
			f.kind, want = fieldTexts, 2
			if l.request.IsFlexible() {
				want = 1
			}
			other.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			f.kind, f.width = fieldFixeds, f.size
			want = f.width
			other.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	default:
		f.kind, f.width = fieldFixed, int(v.Type().Size()) //nolint:gosec // a few bytes
		other.Set(different(v))
	}
	grown, differs := l.growth(v, other)
	return f, differs && grown == want, differs && grown != want
}

// different returns another value of a fixed-size type.
func different(v reflect.Value) reflect.Value {
	other := reflect.New(v.Type()).Elem()
	other.Set(v)
	switch v.Kind() {
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Array:
		other.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		other.SetUint(v.Uint() ^ 1)
	case reflect.Float32, reflect.Float64:
		other.SetFloat(v.Float() + 1)
	default:
		other.SetInt(v.Int() ^ 1)
	}
	return other
}
