package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// functions returns the functions of the templates. They behave like Helm's for the arguments that the
// chart uses. A template with another function does not parse, so that the chart cannot use more.
func functions(set *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, dot any) (string, error) {
			var out strings.Builder
			err := set.ExecuteTemplate(&out, name, dot)
			return out.String(), err
		},
		"append":         func(to []any, value any) []any { return append(slices.Clone(to), value) },
		"concat":         func(lists ...[]any) []any { return slices.Concat(lists...) },
		"contains":       func(part, text string) bool { return strings.Contains(text, part) },
		"deepCopy":       deepCopy,
		"default":        defaultTo,
		"dict":           dict,
		"fromYaml":       fromYAML,
		"int":            toInt,
		"list":           func(values ...any) []any { return values },
		"mergeOverwrite": mergeOverwrite,
		"nindent": func(spaces int, text string) string {
			pad := strings.Repeat(" ", spaces)
			return "\n" + pad + strings.ReplaceAll(text, "\n", "\n"+pad)
		},
		"quote":   func(text any) string { return strconv.Quote(fmt.Sprint(text)) },
		"replace": func(old, with, text string) string { return strings.ReplaceAll(text, old, with) },
		"sha256sum": func(text string) string {
			sum := sha256.Sum256([]byte(text))
			return hex.EncodeToString(sum[:])
		},
		"toJson":     func(value any) (string, error) { text, err := json.Marshal(value); return string(text), err },
		"toYaml":     toYAML,
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"trunc":      func(length int, text string) string { return text[:min(length, len(text))] },
		"until":      until,
		"urlParse":   urlParse,
	}
}

// defaultTo returns the value, or the default if the value is empty.
func defaultTo(fallback, value any) any {
	if isEmpty(value) {
		return fallback
	}
	return value
}

// isEmpty reports whether a value is what templates treat as false.
func isEmpty(value any) bool {
	truth, _ := template.IsTrue(value)
	return value == nil || !truth
}

func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %v is not a string", pairs[i])
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}

func fromYAML(text string) (map[string]any, error) {
	out := map[string]any{}
	return out, yaml.Unmarshal([]byte(text), &out)
}

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

// toInt converts a number of values, which YAML decodes as float64.
func toInt(value any) (int, error) {
	v := reflect.ValueOf(value)
	switch {
	case v.CanInt():
		return int(v.Int()), nil
	case v.CanFloat():
		return int(v.Float()), nil
	}
	return 0, fmt.Errorf("int: %v is not a number", value)
}

func until(n int) []int {
	list := make([]int, max(n, 0))
	for i := range list {
		list[i] = i
	}
	return list
}

func deepCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = deepCopy(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = deepCopy(inner)
		}
		return out
	}
	return value
}

// mergeOverwrite merges the other objects into the first one. As in Helm, an empty value replaces none.
func mergeOverwrite(into map[string]any, others ...map[string]any) map[string]any {
	for _, other := range others {
		for key, value := range other {
			inner, isMap := value.(map[string]any)
			before, wasMap := into[key].(map[string]any)
			_, exists := into[key]
			switch {
			case isMap && wasMap:
				mergeOverwrite(before, inner)
			case !exists || !isEmpty(value):
				into[key] = value
			}
		}
	}
	return into
}

// urlParse returns the parts of a URL that the chart uses.
func urlParse(text string) (map[string]any, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	return map[string]any{"scheme": u.Scheme, "host": u.Host, "hostname": u.Hostname()}, nil
}
