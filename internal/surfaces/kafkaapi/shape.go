package kafkaapi

import (
	"bytes"
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// shape is the layout of a structure in one version of a request.
type shape struct {
	fields   []shapeField
	flexible bool
	brokers  bool // some of its tagged fields have a structure themselves
}

type shapeField struct {
	kind  fieldKind
	width int    // of a fixed field, or of the fixed elements of an array
	size  int    // of an array's element in memory
	elem  *shape // of an array's element, or of what may be null
}

type fieldKind uint8

const (
	fieldFixed   fieldKind = iota
	fieldText              // bytes behind a short length
	fieldBytes             // bytes behind a length
	fieldFixeds            // array of fixed fields
	fieldTexts             // array of texts
	fieldStructs           // array of structures
	fieldMaybe             // one structure or none
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
	l := learner{request: request, base: request.AppendTo(nil)}
	s, _ := l.structure(root)
	shapes.Store(at, s)
	return s
}

// populate gives every array and every structure that may be null one element, so
// that the fields inside show up in what is written.
func populate(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		// Tagged fields are written unless they have their defaults.
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

// learner finds the layout of a request out by writing it: a field whose value
// changes the bytes is there, and in its place unless they grow by more than it
// takes, which is how tagged fields are written.
type learner struct {
	request kmsg.Request
	base    []byte
}

// growth changes a field for a moment and says whether the bytes differ, and by
// how many they grow.
func (l *learner) growth(v reflect.Value, changed reflect.Value) (grown int, differs bool) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	v.Set(changed)
	written := l.request.AppendTo(nil)
	v.Set(old)
	return len(written) - len(l.base), !bytes.Equal(written, l.base)
}

// structure learns a structure. tagged says that some of its fields are written
// as tagged ones.
func (l *learner) structure(v reflect.Value) (s *shape, tagged bool) {
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
			s.brokers = s.brokers || v.Field(i).Kind() == reflect.Struct
		case present:
			s.fields = append(s.fields, f)
		}
	}
	return s, tagged
}

// field learns one field.
func (l *learner) field(v reflect.Value) (f shapeField, present, tagged bool) {
	other := reflect.New(v.Type()).Elem()
	want := 0 // growth of a field that is in its place
	switch v.Kind() {
	case reflect.Struct:
		_, tagged = l.structure(v)
		return f, false, tagged
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			f.kind = fieldMaybe
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

// different returns another value of a fixed type.
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
