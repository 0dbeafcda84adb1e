package schemas

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Compatibility is the result of a compatibility check.
type Compatibility struct {
	Compatible bool `json:"compatible"`
	// Problems are the reasons why the schema is not compatible.
	Problems []Problem `json:"problems,omitempty"`
	// Level is the compatibility level of the check, Against the version with which the
	// schema was compared; 0 if the registry did not return it.
	Level   string `json:"level,omitempty"`
	Against int    `json:"against,omitempty"`
}

// Problem is one reason why a schema is not compatible.
type Problem struct {
	// Type is a word for programs, such as READER_FIELD_MISSING_DEFAULT_VALUE.
	Type string `json:"type,omitempty"`
	// Description is a text for people.
	Description string `json:"description"`
	// Info contains details: a field, symbols, types. It may be empty.
	Info string `json:"info,omitempty"`
}

// Check reports whether a schema can be registered as the next version of a subject, and the
// problems otherwise. It changes nothing. An invalid schema is not compatible.
func (r *Registry) Check(ctx context.Context, subject string, schema Schema) (*Compatibility, error) {
	return r.check(ctx, "/compatibility"+subjectPath(subject)+"/versions", schema)
}

// CheckVersion compares a schema with one version of a subject, or with Latest, at the
// subject's compatibility level.
func (r *Registry) CheckVersion(ctx context.Context, subject string, version int,
	schema Schema,
) (*Compatibility, error) {
	return r.check(ctx, "/compatibility"+versionPath(subject, version), schema)
}

func (r *Registry) check(ctx context.Context, path string, schema Schema) (*Compatibility, error) {
	var result struct {
		Compatible bool     `json:"is_compatible"`
		Messages   []string `json:"messages"`
	}
	if err := r.call(ctx, http.MethodPost, path, url.Values{"verbose": {"true"}}, schema, &result); err != nil {
		return nil, err
	}
	c := &Compatibility{Compatible: result.Compatible}
	for _, message := range result.Messages {
		c.add(message)
	}
	return c, nil
}

// add parses one of the registry's messages, which have a special notation
// (docs/spec/registry.md#messages).
func (c *Compatibility) add(message string) {
	inner := strings.TrimSuffix(strings.TrimPrefix(message, "{"), "}")
	switch {
	case strings.HasPrefix(inner, "oldSchemaVersion: "):
		if n, err := strconv.Atoi(strings.TrimPrefix(inner, "oldSchemaVersion: ")); err == nil {
			c.Against = n
		}
	case strings.HasPrefix(inner, "oldSchema: "):
	case strings.HasPrefix(inner, "validateFields: "):
		_, level, _ := strings.Cut(inner, "compatibility: '")
		c.Level = strings.TrimSuffix(level, "'")
	case strings.HasPrefix(inner, "errorType:"):
		c.Problems = append(c.Problems, parseProblem(inner))
	default:
		c.Problems = append(c.Problems, Problem{Description: message})
	}
}

// parseProblem parses errorType:'T', description:'…', additionalInfo:'…', with single or double
// quotation marks, which are not escaped in the texts.
func parseProblem(inner string) Problem {
	rest := strings.TrimPrefix(inner, "errorType:")
	if rest == "" {
		return Problem{Description: inner}
	}
	mark := rest[:1]
	kind, rest, ok := strings.Cut(rest[1:], mark+", description:"+mark)
	if !ok {
		return Problem{Description: inner}
	}
	p := Problem{Type: kind}
	if at := strings.LastIndex(rest, mark+", additionalInfo:"+mark); at >= 0 {
		p.Info = strings.TrimSuffix(rest[at+len(mark+", additionalInfo:"+mark):], mark)
		rest = rest[:at]
	}
	p.Description = strings.TrimSuffix(rest, mark)
	return p
}

// Side is one of the two schemas of a Diff: a version of a subject, or a draft for a subject.
type Side struct {
	Subject string
	Version int
	Draft   *Schema
}

func (s Side) body() map[string]any {
	if s.Draft == nil {
		return map[string]any{"subject": s.Subject, "version": s.Version}
	}
	body := map[string]any{"subject": s.Subject, "schema": s.Draft.Text, "references": s.Draft.References}
	if s.Draft.Type != "" {
		body["schemaType"] = s.Draft.Type
	}
	return body
}

// Difference is the result of a Diff.
type Difference struct {
	Changes  []Change `json:"changes"`
	Backward Reading  `json:"backward"` // the second schema reads data of the first
	Forward  Reading  `json:"forward"`  // the first schema reads data of the second
	// Levels are the compatibility levels that allow the second schema after the first.
	Levels []string `json:"levels"`
}

// Change is one difference.
type Change struct {
	Type       string `json:"type"`
	Path       string `json:"path,omitempty"`
	Text       string `json:"text,omitempty"`
	Compatible bool   `json:"compatible"`
}

// Reading reports whether one schema can read the data of another.
type Reading struct {
	Compatible bool     `json:"compatible"`
	Problems   []string `json:"problems"`
}

// Diff compares two schemas, independently of the compatibility levels of their subjects.
func (r *Registry) Diff(ctx context.Context, from, to Side) (*Difference, error) {
	d := new(Difference)
	body := map[string]any{"from": from.body(), "to": to.body()}
	return d, r.call(ctx, http.MethodPost, "/registry/v1alpha1/diff", nil, body, d)
}
