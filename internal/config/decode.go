package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoding decodes YAML into a Config. After a problem it leaves the field unchanged and
// continues, so that one error reports all problems.
type decoding struct {
	problems problems
	origins  map[string]string
	origin   string // source of the values; "" uses the line of each value in the file
	nodes    int    // values decoded so far, bounded because aliases can expand a small file
}

const maxNodes = 10_000

// allowedValues describes the values of settings whose Go type is not specific enough for an
// error message.
var allowedValues = map[string]string{
	"http": "host:port, or off", "https": "host:port, or off", "ops": "host:port, or off",
	"defaultCluster": "organization/cluster, or off", "audit.path": "a path, or off",
	"baseURL": "http(s)://host[:port]", "issuerURL": "http(s)://host[:port]", "domain": "a DNS name",
	"log.level": "debug, info, warn or error", "log.format": "text or json",
}

func (d *decoding) value(node *yaml.Node, into reflect.Value, path string) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.problems.addf(path, "configuration has more than %d values", maxNodes)
		}
		return
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if path != "" {
		d.origins[path] = d.origin
		if d.origin == "" {
			d.origins[path] = "line " + strconv.Itoa(node.Line)
		}
	}
	if node.ShortTag() == "!!null" {
		return // null has the same effect as leaving the key out
	}
	switch into.Kind() {
	case reflect.Struct:
		d.mapping(node, into, path)
	case reflect.Slice:
		d.list(node, into, path)
	default:
		if node.Kind != yaml.ScalarNode {
			d.problems.addf(path, "must be %s, not a %s", describe(path, into), kindOf(node))
			return
		}
		if err := setScalar(node, into, path); err != nil {
			d.problems.addf(path, "%v", err)
		}
	}
}

func (d *decoding) mapping(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.MappingNode {
		d.problems.addf(orRoot(path), "must be a mapping with the settings %s",
			strings.Join(settingsOf(into.Type()), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i].Value
		child := join(path, key)
		field := fieldNamed(into, key)
		switch {
		case seen[key]:
			d.problems.addf(child, "is set twice, the second time in line %d", node.Content[i].Line)
		case !field.IsValid():
			d.origins[child] = "line " + strconv.Itoa(node.Content[i].Line)
			d.problems.addf(child, "unknown setting; %s", suggest(into.Type(), key))
		default:
			d.value(node.Content[i+1], field, child)
		}
		seen[key] = true
	}
}

func (d *decoding) list(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		d.problems.addf(path, "must be a list, as in [a, b]")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		d.value(item, list.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	if into.Set(list); len(node.Content) == 0 && path != "pools" {
		into.SetZero()
	}
}

// setScalar reads one value by the type of its field.
func setScalar(node *yaml.Node, into reflect.Value, path string) error {
	text := node.Value
	switch target := into.Addr().Interface().(type) {
	case *Duration:
		parsed, err := parseDuration(text)
		if err != nil {
			return err
		}
		*target = parsed
	case *Size:
		parsed, err := parseSize(text)
		if err != nil {
			return err
		}
		*target = parsed
	case *bool:
		switch strings.ToLower(text) {
		case "true", "on", "yes":
			*target = true
		case "false", "off", "no":
			*target = false
		default:
			return fmt.Errorf("%q must be true or false", text)
		}
	case *int:
		parsed, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q must be a whole number", text)
		}
		*target = parsed
	case *float64:
		parsed, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q must be a number", text)
		}
		*target = parsed
	case *string:
		if tag := node.ShortTag(); tag != "!!str" {
			return fmt.Errorf("%s must be %s; put a string that looks like another type in quotes", text,
				describe(path, into))
		}
		*target = text
	}
	return nil
}

func describe(path string, into reflect.Value) string {
	if text := allowedValues[path]; text != "" {
		return text
	}
	switch into.Interface().(type) {
	case Duration:
		return "a duration such as 90s"
	case Size:
		return "a size such as 4Mi"
	case bool:
		return "true or false"
	case int, float64:
		return "a number"
	}
	return "a string"
}

func kindOf(node *yaml.Node) string {
	if node.Kind == yaml.SequenceNode {
		return "list"
	}
	return "mapping"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orRoot(path string) string {
	if path == "" {
		return "configuration"
	}
	return path
}

func fieldNamed(into reflect.Value, key string) reflect.Value {
	for i, name := range settingsOf(into.Type()) {
		if name == key {
			return into.Field(i)
		}
	}
	return reflect.Value{}
}

// settingsOf returns the names of a struct's settings, in the order of its fields.
func settingsOf(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("json"); tag != "" {
			name, _, _ := strings.Cut(tag, ",")
			names = append(names, name)
		}
	}
	return names
}

func suggest(t reflect.Type, key string) string {
	names := settingsOf(t)
	for _, name := range names {
		if strings.EqualFold(name, key) {
			return "did you mean " + name + "?"
		}
	}
	return "known settings are " + strings.Join(names, ", ")
}
