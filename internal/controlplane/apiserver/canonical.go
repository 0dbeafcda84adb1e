package apiserver

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"freshet/internal/controlplane/jsonshape"
)

// canonicalApply rewrites the values of an apply in the form in which they are stored and read:
// quantities (1.6Gi is 1717986918400m), durations (3h is 3h0m0s), times and the settings of
// protocols. Server-side apply compares texts: without this, the same value of another manager
// would be a conflict, and an unchanged manifest a change. A patch that cannot be read, or that has
// duplicate keys, is left to the API machinery, which reports the error.
//
// change lets the kind change the decoded patch, and reports whether it has.
func canonicalApply(patch []byte, empty runtime.Object, change func(patch map[string]any) bool) []byte {
	object, ok := readPatch(patch)
	if !ok || empty == nil {
		return patch
	}
	changed := change(object)
	t := reflect.TypeOf(empty).Elem()
	for name, value := range object {
		if name == "metadata" {
			continue // metadata has no values with several forms
		}
		if next := jsonshape.FieldType(t, name); next != nil {
			var new bool
			object[name], new = rewrite(next, value)
			changed = changed || new
		}
	}
	if !changed {
		return patch
	}
	text, err := json.Marshal(object)
	if err != nil {
		return patch
	}
	return text
}

// readPatch decodes JSON or YAML; numbers keep their text.
func readPatch(patch []byte) (object map[string]any, ok bool) {
	text := bytes.TrimSpace(patch)
	if !bytes.HasPrefix(text, []byte("{")) {
		var err error
		if text, err = yaml.YAMLToJSONStrict(patch); err != nil {
			return nil, false
		}
	}
	var probe any
	if strict, err := kjson.UnmarshalStrict(text, &probe); err != nil || len(strict) > 0 {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return object, decoder.Decode(&object) == nil && object != nil
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	marshaler   = reflect.TypeFor[json.Marshaler]()
)

// rewrite walks a value along its type, and rewrites values whose type has its own JSON encoding.
func rewrite(t reflect.Type, value any) (out any, changed bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return nil, false
	}
	if pointer := reflect.PointerTo(t); pointer.Implements(unmarshaler) && pointer.Implements(marshaler) {
		return throughType(t, value)
	}
	each := func(next reflect.Type, below any, set func(any)) {
		if next == nil {
			return
		}
		if got, new := rewrite(next, below); new {
			set(got)
			changed = true
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			next := jsonshape.FieldType(t, name)
			each(next, below, func(got any) { v[name] = got })
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return value, false
		}
		for i, below := range v {
			each(t.Elem(), below, func(got any) { v[i] = got })
		}
	}
	return value, changed
}

// throughType decodes a value with its type and encodes it again. A value that cannot be decoded
// stays unchanged; the API machinery reports the error.
func throughType(t reflect.Type, value any) (out any, changed bool) {
	before, err := json.Marshal(value)
	if err != nil {
		return value, false
	}
	typed := reflect.New(t).Interface()
	if json.Unmarshal(before, typed) != nil {
		return value, false
	}
	after, err := json.Marshal(typed)
	if err != nil || bytes.Equal(before, after) || string(after) == "null" {
		return value, false
	}
	decoder := json.NewDecoder(bytes.NewReader(after))
	decoder.UseNumber()
	if decoder.Decode(&out) != nil {
		return value, false
	}
	return out, true
}
