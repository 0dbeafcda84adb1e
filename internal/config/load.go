package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"freshet/internal/errs"
)

// maxFile bounds a configuration file, and with it what YAML aliases can
// expand to.
const maxFile = 1 << 20

// Load reads a file over the defaults. Validate is the caller's next step,
// once flags have been laid over the result.
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
		return nil, errs.Newf(errs.TooLarge, "%s: the configuration file is too large, the maximum is %d bytes", path, maxFile)
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads YAML over the defaults; an unknown or repeated key is an error.
func Parse(text []byte) (*Config, error) {
	if bytes.Contains(text, []byte("\n---")) {
		return nil, errs.New(errs.Invalid, "the configuration must be one YAML document, there are several")
	}
	c := Default()
	// Emptied first: decoding into a filled list would let an entry that
	// leaves a field out inherit it from the default entry.
	c.Pools = nil
	if err := decodeStrict(text, c); err != nil {
		return nil, errs.Newf(errs.Invalid, "%w", err)
	}
	if c.Pools == nil {
		c.Pools = defaultPools()
	}
	for i := range c.Pools {
		c.Pools[i].fill()
	}
	return c, nil
}

// decodeStrict goes through JSON by the case-sensitive decoder: the standard
// one would take "datadir" for "dataDir".
func decodeStrict(text []byte, into *Config) error {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	unknown, err := json.UnmarshalStrict(asJSON, into)
	return errors.Join(append([]error{err}, unknown...)...)
}

func (p *Pool) fill() {
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

// Print writes the effective configuration as YAML that Parse reads back.
// Secrets are references and stay so; a password hidden in a URL, which
// Validate refuses anyway, is starred.
func Print(w io.Writer, c *Config) error {
	shown := *c
	shown.BaseURL, shown.IssuerURL = redactURL(c.BaseURL), redactURL(c.IssuerURL)
	shown.Etcd.Endpoints = make([]string, len(c.Etcd.Endpoints))
	for i, endpoint := range c.Etcd.Endpoints {
		shown.Etcd.Endpoints[i] = redactURL(endpoint)
	}
	text, err := yaml.Marshal(&shown)
	if err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	_, err = w.Write(text)
	return err
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
