package store

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/internal/controlplane/jsonshape"
)

// unknownFields returns the unknown fields that an apply set in objects without declared fields,
// such as the spec of a service account. The API machinery rejects unknown fields everywhere else,
// but treats an empty struct as free-form; the managed fields show what it accepted
// (docs/spec/resources.md#r11).
func unknownFields(object Object) field.ErrorList {
	var errs field.ErrorList
	for _, entry := range object.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var tree map[string]json.RawMessage
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &tree) == nil {
			errs = append(errs, walkFields(reflect.TypeOf(object), tree, nil)...)
		}
	}
	return errs
}

// unknownFields checks an object only if its kind contains empty structs; most do not.
func (k *kind[T]) unknownFields(object T) field.ErrorList {
	if !k.emptyObjects {
		return nil
	}
	return unknownFields(object)
}

// hasEmptyObjects reports whether a type contains a struct without fields.
func hasEmptyObjects(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		return hasEmptyObjects(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if hasEmptyObjects(t.Field(i).Type, seen) {
				return true
			}
		}
		return t.NumField() == 0
	}
	return false
}

// walkFields compares the tree of managed fields (f:name, k:{key}, v:value, i:index) with the type.
func walkFields(t reflect.Type, tree map[string]json.RawMessage, path *field.Path) field.ErrorList {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var errs field.ErrorList
	for key, raw := range tree {
		name, isField := strings.CutPrefix(key, "f:")
		var next reflect.Type
		switch {
		case t.Kind() == reflect.Struct && isField:
			if t.NumField() == 0 {
				errs = append(errs, field.Invalid(path.Child(name), field.OmitValueType{}, "unknown field"))
				continue
			}
			next = jsonshape.FieldType(t, name)
		case t.Kind() == reflect.Map && isField, t.Kind() == reflect.Slice && !isField:
			next = t.Elem()
		}
		var below map[string]json.RawMessage
		if next != nil && json.Unmarshal(raw, &below) == nil {
			errs = append(errs, walkFields(next, below, path.Child(name))...)
		}
	}
	return errs
}
