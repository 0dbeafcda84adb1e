package kafkaapi

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/growth"
	"freshet/test/tally"
)

// learnShape derives the shape of a version of a request from the codec.
func learnShape(key, version int16) *shape {
	request := kmsg.RequestForKey(key)
	root := reflect.ValueOf(request).Elem()
	populate(root)
	request.SetVersion(version)
	l := shapeLearner{request: request, base: request.AppendTo(nil)}
	s, _ := l.structure(root)
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

// describeShape returns a shape in the notation of requestShapes.
func describeShape(s *shape) string {
	var list []string
	for _, f := range s.fields {
		switch f.kind {
		case fieldFixed:
			list = append(list, fmt.Sprintf("fixed(%d)", f.width))
		case fieldText:
			list = append(list, "str")
		case fieldBytes:
			list = append(list, "raw")
		case fieldFixeds:
			list = append(list, fmt.Sprintf("fixeds(%d)", f.width))
		case fieldTexts:
			list = append(list, "strs")
		case fieldStructs:
			list = append(list, fmt.Sprintf("structs(%d, %s)", f.size, describeShape(f.elem)))
		case fieldNullableStruct:
			list = append(list, fmt.Sprintf("nullable(%s)", describeShape(f.elem)))
		}
	}
	return strings.Join(list, ", ")
}

// TestShapesMatchTheCodec compares requestShapes with the codec for every API and version.
func TestShapesMatchTheCodec(t *testing.T) {
	t.Parallel()
	for key, api := range allAPIs() {
		if got := requestShapes[key].name; got != api.name {
			t.Errorf("key %d: got shapes of %q, want those of %s", key, got, api.name)
		}
		for version := api.min; version <= api.max; version++ {
			got, want := shapeOf(key, version), learnShape(key, version)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s version %d: got %s (flexible %t, broker tags %t), want %s (%t, %t)", api.name, version,
					describeShape(got), got.flexible, got.brokerTags, describeShape(want), want.flexible,
					want.brokerTags)
			}
		}
	}
}

// scatter sets every field to a random valid value.
func scatter(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				scatter(r, v.Field(i))
			}
		}
	case reflect.String:
		v.SetString([]string{"", "a", "orders"}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scatter(r, v.Elem())
		}
	case reflect.Slice:
		n := r.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			scatter(r, v.Index(i))
		}
	case reflect.Array:
		scatter(r, v.Index(0))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(r.IntN(100)))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	default:
		v.SetInt(r.Int64N(100) - 1)
	}
}

// decode decodes a body as a connection does.
func decode(request kmsg.Request, body []byte) error {
	body, _, err := measureBody(request, body)
	if err != nil {
		return err
	}
	return decodeBody(request, body)
}

// TestCheckBodyAcceptsEveryRequest checks for every API and version that checkBody accepts what the codec
// encodes, and rejects it with one byte more or less.
func TestCheckBodyAcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for key, api := range allAPIs() {
		for version := api.min; version <= api.max; version++ {
			for range 50 {
				request := kmsg.RequestForKey(key)
				request.SetVersion(version)
				scatter(r, reflect.ValueOf(request).Elem())
				if fetch, ok := request.(*kmsg.FetchRequest); ok { // fields that only brokers send
					fetch.ClusterID, fetch.ReplicaState = nil, kmsg.NewFetchRequestReplicaState()
				}
				body := request.AppendTo(nil)
				again := kmsg.RequestForKey(key)
				again.SetVersion(version)
				if err := decode(again, body); err != nil {
					t.Fatalf("%s version %d: got %v for %+v, want it decoded", api.name, version, err, request)
				}
				if len(body) == 0 {
					continue
				}
				if err := decode(again, append(body, 0)); !errors.Is(err, errTrailingBytes) {
					t.Fatalf("%s version %d with a byte more: got %v, want %v", api.name, version, err,
						errTrailingBytes)
				}
				if err := decode(again, body[:len(body)-1]); err == nil {
					t.Fatalf("%s version %d with a byte less: got no error for %+v", api.name, version, request)
				}
			}
		}
	}
}

// hash hashes a number of bytes one after the other. It takes some tens of milliseconds for 32 MiB.
func hash(n int) {
	h, page := fnv.New64a(), make([]byte, 1<<20)
	for range n / len(page) {
		_, _ = h.Write(page)
	}
}

// TestAttackAnnouncements sends requests that announce more data than they contain. It checks that
// their cost in time and memory does not depend on the announced numbers.
func TestAttackAnnouncements(t *testing.T) { //nolint:paralleltest // measures CPU time
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version = 17
	fetch.ReplicaState.ID, fetch.ReplicaState.Epoch = 5, 7
	inside := fetch.AppendTo(nil)
	inside = append(inside[:len(inside)-1], huge...) // the tagged fields of a tagged field
	inside[len(inside)-len(huge)-13-1] += byte(len(huge) - 1)
	list := append([]byte{0, 0, 0, 0, 0}, 0x80, 0x80, 0x80, 0x10) // 32 Mi elements
	for name, tc := range map[string]struct {
		key, version int16
		body         []byte
	}{
		"tags of a client that is not authenticated": {keyAPIVersions, 3, append([]byte{2, 'a', 2, '1'}, huge...)},
		"tags of credentials":                        {keySASLAuthenticate, 2, append([]byte{2, 'x'}, huge...)},
		"tags of a request":                          {3, 12, append([]byte{0, 0, 0}, huge...)},
		"tags inside a tagged field":                 {1, 17, inside},
		"an array without its elements":              {2, 8, list},
		"an array of the smallest elements":          {3, 1, append([]byte{0, 0x60, 0, 0}, make([]byte, 0x600000)...)},
		"an array of arrays": {
			2, 8,
			append([]byte{0, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x03}, make([]byte, 32<<20)...),
		},
	} {
		request := kmsg.RequestForKey(tc.key)
		request.SetVersion(tc.version)
		successes := 0
		growth.CheckAtMost(t, name, func() { hash(32 << 20) }, func() {
			if err := decode(request, tc.body); err == nil {
				successes++
				t.Errorf("%s: got no error, want one", name)
			}
		})
		tally.Attack(t, "stream request: "+name, 1, successes)
	}
}
