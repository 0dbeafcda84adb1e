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

// locatingSerializer adds the field to decoding errors that lack it: times and quantities decode themselves
// without access to the name of their field.
type locatingSerializer struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (l locatingSerializer) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := l.Serializer.Decode(data, defaults, into)
	if err != nil && !runtime.IsNotRegisteredError(err) {
		err = withField(err, data)
	}
	return obj, kind, err
}

// withField prefixes an error about a value with the path of its field.
func withField(err error, data []byte) error {
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
	if yaml.Unmarshal(data, &tree) != nil { // JSON is a subset of YAML
		return err
	}
	if path := findField(tree, nil, "", is); path != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// findField returns the path of the first matching value, in a deterministic order.
func findField(value any, path *field.Path, name string, is func(name, text string) bool) *field.Path {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := findField(v[key], path.Child(key), key, is); found != nil {
				return found
			}
		}
	case []any:
		for i, item := range v {
			if found := findField(item, path.Index(i), name, is); found != nil {
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

// checkShape decodes a strategic merge patch as if it were the whole object: it has the same
// fields, and its directives are ignored. The API machinery would find the same errors when it
// merges, but would not report the field.
func checkShape(patch []byte, into runtime.Object) error {
	if into == nil {
		return nil
	}
	err := json.Unmarshal(patch, into)
	var syntax *json.SyntaxError
	if err == nil || errors.As(err, &syntax) {
		return nil // the API machinery reports malformed bodies
	}
	return shapeError{withField(err, patch)}
}

// errShape matches every shapeError.
var errShape = errors.New("value has the wrong type")

type shapeError struct{ error }

func (shapeError) Is(target error) bool { return target == errShape }
