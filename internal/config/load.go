package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"freshet/internal/base/errs"
)

// maxFile bounds the size of a configuration file in bytes.
const maxFile = 1 << 20

// Load reads a file over the defaults. The caller applies flags to the result and then
// calls Validate.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errs.Newf(errs.NotFound, "reading the configuration: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, errs.Newf(errs.Invalid, "reading the configuration: %w", err)
	}
	if len(text) > maxFile {
		return nil, errs.Newf(errs.TooLarge, "%s: configuration file is too large; the maximum is %d bytes",
			path, maxFile)
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads YAML over the defaults. An unknown or repeated key is an error. The error
// lists all problems.
func Parse(text []byte) (*Config, error) {
	c := Default()
	c.origins = map[string]string{}
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, errs.Newf(errs.Invalid, "%w", err)
	}
	if decoder.Decode(new(yaml.Node)) == nil {
		return nil, errs.New(errs.Invalid, "configuration must be one YAML document, but it contains several")
	}
	if len(doc.Content) == 0 {
		return c, nil
	}
	// The default pools are removed first. Otherwise an entry without a field would
	// inherit it from the default entry.
	c.Pools = nil
	d := decoding{origins: c.origins}
	d.value(doc.Content[0], reflect.ValueOf(c).Elem(), "")
	c.setDefaults()
	if len(d.problems) == 0 {
		return c, nil
	}
	return nil, c.withValidation(d.problems)
}

// withValidation adds the problems that validation finds in other fields to the problems of
// decoding, and returns the error that lists all of them.
func (c *Config) withValidation(p problems) error {
	var rest problems
	c.validate(&rest)
	for _, one := range rest {
		if !slices.ContainsFunc(p, func(known problem) bool { return known.field == one.field }) {
			p = append(p, one)
		}
	}
	return p.err(c.origins)
}

func (c *Config) setDefaults() {
	if c.Pools == nil {
		c.Pools = defaultPools()
	}
	for i := range c.Pools {
		c.Pools[i].setDefaults()
	}
}

func (p *Pool) setDefaults() {
	if p.Namespace == "" {
		p.Namespace = "default"
	}
	if p.Type == "" {
		p.Type = "generic"
	}
	for i := range p.Members {
		if p.Members[i].Engine == "" {
			p.Members[i].Engine = EnginePebble
		}
		if p.Members[i].Location == "" {
			p.Members[i].Location = p.Members[i].Name
		}
	}
}
