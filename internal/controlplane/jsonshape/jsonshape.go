// Package jsonshape examines the structure of JSON: how deep it is nested, and which Go type a field
// has. It decodes nothing and knows no kinds; ../quantities checks values.
package jsonshape

import (
	"reflect"
	"strings"
)

// Depth returns the nesting depth of JSON: the largest number of open brackets outside of texts.
func Depth(text []byte) int {
	open, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}

// FieldType returns the type of a struct's field by its JSON name, embedded structs included, or the
// type of a map's values; nil if there is no such field.
func FieldType(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
	default:
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type
		}
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if found := FieldType(f.Type, name); found != nil {
				return found
			}
		}
	}
	return nil
}
