package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// locating names the field of what cannot be decoded where the decoder does
// not: times and quantities read themselves, and do not know where they stand.
type locating struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (l locating) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := l.Serializer.Decode(data, defaults, into)
	if err != nil && !runtime.IsNotRegisteredError(err) {
		err = located(err, data)
	}
	return obj, kind, err
}

// located puts the field's path before an error of a value.
func located(err error, data []byte) error {
	var wrongTime *time.ParseError
	var is func(name, text string) bool
	switch {
	case errors.As(err, &wrongTime):
		is = func(_, text string) bool { return text == wrongTime.Value }
	case errors.Is(err, resource.ErrFormatWrong), errors.Is(err, resource.ErrNumeric),
		errors.Is(err, resource.ErrSuffix):
		is = func(name, text string) bool {
			_, err := resource.ParseQuantity(text)
			return err != nil && slices.Contains([]string{"cpu", "memory", "ledgerDisk", "journalDisk"}, name)
		}
	default:
		return err
	}
	var tree any
	if yaml.Unmarshal(data, &tree) != nil { // JSON is YAML
		return err
	}
	if path := find(tree, nil, "", is); path != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// find is the path of the first value that is looked for, in a steady order.
func find(value any, path *field.Path, name string, is func(name, text string) bool) *field.Path {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := find(v[key], path.Child(key), key, is); found != nil {
				return found
			}
		}
	case []any:
		for i, item := range v {
			if found := find(item, path.Index(i), name, is); found != nil {
				return found
			}
		}
	case string:
		if is(name, v) {
			return path
		}
	case bool:
		if is(name, strconv.FormatBool(v)) {
			return path
		}
	}
	return nil
}

// checkShape decodes a strategic merge patch as if it were the whole object: its
// fields are the same, and its directives are passed over. The machinery would
// find the same mistakes when it merges, and not say where.
func checkShape(patch []byte, into runtime.Object) error {
	if into == nil {
		return nil
	}
	err := json.Unmarshal(patch, into)
	var syntax *json.SyntaxError
	if err == nil || errors.As(err, &syntax) {
		return nil // malformed bodies are told by the machinery
	}
	return shapeError{located(err, patch)}
}

// errShape is what every shapeError is.
var errShape = errors.New("a value is of the wrong type")

type shapeError struct{ error }

func (shapeError) Is(target error) bool { return target == errShape }
