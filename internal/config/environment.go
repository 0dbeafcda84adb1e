package config

import (
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefix begins the name of every environment variable that is a setting.
const prefix = "FRESHET_"

// setting is one that can be given by an environment variable.
type setting struct {
	path, variable string
	field          reflect.Value
}

var camel = regexp.MustCompile(`([a-z])([A-Z])`)

// variableOf makes FRESHET_LIMITS_TOKEN_RATE of limits.tokenRate.
func variableOf(path string) string {
	words := camel.ReplaceAllString(strings.ReplaceAll(path, ".", "_"), "${1}_${2}")
	return prefix + strings.ToUpper(words)
}

// settings lists all of them, and the names of the sections they are in.
func (c *Config) settings() (list []setting, sections []string) {
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i, name := range settingsOf(v.Type()) {
			field, child := v.Field(i), join(path, name)
			if field.Kind() == reflect.Struct {
				sections = append(sections, variableOf(child)+"_")
				walk(field, child)
				continue
			}
			list = append(list, setting{child, variableOf(child), field})
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
	return list, sections
}

// ApplyEnvironment lays environment variables (NAME=value) over the configuration.
// A list is written with commas, the pools as YAML. A variable of ours that is in a
// section and is no setting is an error; others are somebody else's.
func (c *Config) ApplyEnvironment(environ []string) error {
	if c.origins == nil {
		c.origins = map[string]string{}
	}
	list, sections := c.settings()
	byName := map[string]setting{}
	for _, s := range list {
		byName[s.variable] = s
	}
	var p problems
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		s, ok := byName[name]
		if !ok {
			for _, section := range sections {
				if strings.HasPrefix(name, section) {
					p.addf(name, "there is no such setting")
				}
			}
			continue
		}
		node, err := s.node(text)
		if err != nil {
			p.addf(s.path, "%v (%s)", err, name)
			continue
		}
		d := decoding{origins: c.origins, origin: name}
		if s.field.Kind() == reflect.Slice {
			s.field.SetZero() // an entry inherits nothing of one in the file
		}
		d.value(node, s.field, s.path)
		p = append(p, d.problems...)
	}
	c.fill()
	if len(p) > 0 {
		return c.also(p)
	}
	return nil
}

// node puts a variable's text into the form of the file.
func (s *setting) node(text string) (*yaml.Node, error) {
	switch {
	case s.field.Kind() != reflect.Slice:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, nil
	case s.field.Type().Elem().Kind() == reflect.String:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: item})
			}
		}
		return list, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}, err
	}
	return doc.Content[0], nil
}
