package config

import (
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefix is the prefix of every environment variable that sets a setting.
const prefix = "FRESHET_"

// setting is a setting with its environment variable.
type setting struct {
	path, variable string
	field          reflect.Value
}

var camel = regexp.MustCompile(`([a-z])([A-Z])`)

// variableOf returns FRESHET_LIMITS_TOKEN_RATE for limits.tokenRate.
func variableOf(path string) string {
	words := camel.ReplaceAllString(strings.ReplaceAll(path, ".", "_"), "${1}_${2}")
	return prefix + strings.ToUpper(words)
}

// settings returns all settings, and the prefixes of the variables of each section.
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

// ApplyEnvironment overrides the configuration with environment variables (NAME=value).
// A list of strings is separated by commas; a list of objects is YAML. A variable with the
// prefix of a section that matches no setting is an error. Other variables are ignored,
// because they may belong to other programs.
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
					p.addf(name, "unknown setting")
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
			s.field.SetZero() // otherwise entries would inherit fields of the file's entries
		}
		d.value(node, s.field, s.path)
		p = append(p, d.problems...)
	}
	c.setDefaults()
	if len(p) > 0 {
		return c.withValidation(p)
	}
	return nil
}

// node returns the YAML node of a variable's text.
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
