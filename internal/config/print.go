package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// reference is the default configuration with a comment for each setting. Print uses its
// comments, and docs/reference/configuration.md contains a copy; a test compares them.
//
//go:embed reference.yaml
var reference []byte

// Print writes the effective configuration as YAML that Parse can read, with comments. It
// prints the paths of secrets, never their content. It redacts a password in a URL, which
// Validate rejects anyway.
func Print(w io.Writer, c *Config) error {
	shown := *c
	shown.BaseURL, shown.IssuerURL = redactURL(c.BaseURL), redactURL(c.IssuerURL)
	shown.Etcd.Endpoints = make([]string, len(c.Etcd.Endpoints))
	for i, endpoint := range c.Etcd.Endpoints {
		shown.Etcd.Endpoints[i] = redactURL(endpoint)
	}
	text, err := commented(&shown)
	if err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// commented returns the reference with the values of a configuration.
func commented(c *Config) ([]byte, error) {
	var values, page yaml.Node
	plain, err := sigsyaml.Marshal(c)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(plain, &values); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(reference, &page); err != nil {
		return nil, err
	}
	replaceValues(page.Content[0], values.Content[0])
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&page); err != nil {
		return nil, err
	}
	return []byte(withBlankLines(out.String())), nil
}

// replaceValues replaces the values of the commented mapping page with those of values.
func replaceValues(page, values *yaml.Node) {
	for i := 0; i+1 < len(page.Content); i += 2 {
		key, old := page.Content[i], page.Content[i+1]
		value := lookUp(values, key.Value)
		switch {
		case value == nil: // the encoder omits empty lists
			page.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		case old.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			replaceValues(old, value)
		default:
			page.Content[i+1] = sortKeys(old, value)
		}
	}
}

// sortKeys sorts the keys of mappings within a list as in the first entry of page.
func sortKeys(page, value *yaml.Node) *yaml.Node {
	switch {
	case page.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode && len(page.Content) > 0:
		for i, item := range value.Content {
			value.Content[i] = sortKeys(page.Content[0], item)
		}
	case page.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
		sorted := &yaml.Node{Kind: yaml.MappingNode}
		for i := 0; i+1 < len(page.Content); i += 2 {
			if found := lookUp(value, page.Content[i].Value); found != nil {
				sorted.Content = append(sorted.Content, page.Content[i], sortKeys(page.Content[i+1], found))
			}
		}
		return sorted
	}
	return value
}

func lookUp(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// withBlankLines inserts an empty line before every top-level comment.
func withBlankLines(text string) string {
	var out strings.Builder
	before := "#"
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(before, "#") {
			out.WriteString("\n")
		}
		out.WriteString(line)
		before = line
	}
	return out.String()
}

func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(unreadable URL)"
	}
	if u.User != nil {
		u.User = url.User("REDACTED")
		return u.String()
	}
	return text
}
