package access

import (
	"errors"
	"fmt"
	"strings"
)

// Restriction limits a binding to some resources. An empty field matches any value. A
// value is a name, a prefix followed by *, or for a topic allPartition('name'), which
// matches the topic and its partitions.
type Restriction struct {
	Organization   string
	Instance       string
	Cluster        string
	Tenant         string
	Namespace      string
	TopicDomain    string
	Topic          string
	Subscription   string
	Subject        string
	ServiceAccount string
	APIKey         string
	Secret         string
}

func (r *Restriction) field(i int) string {
	if i == fieldSecret {
		return r.Secret
	}
	scope := Scope{
		r.Organization, r.Instance, r.Cluster, r.Tenant, r.Namespace, r.TopicDomain, r.Topic,
		r.Subscription, r.Subject, r.ServiceAccount, r.APIKey,
	}
	return scope.field(i)
}

// String returns the restriction as a path of patterns.
func (r Restriction) String() string {
	var parts []string
	for i := range fieldCount {
		if value := r.field(i); value != "" {
			parts = append(parts, fieldNames[i]+"/"+value)
		}
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, "/")
}

// patternKind is the kind of comparison of a pattern.
type patternKind uint8

const (
	patternExact patternKind = iota
	patternPrefix
	patternPartitions
)

// pattern is one field of a compiled restriction.
type pattern struct {
	field int
	kind  patternKind
	text  string
}

const (
	maxRestrictionValue = 512
	partitionSuffix     = "-partition-"
)

// errInvalidPattern is the error for a value that is not a valid pattern.
var errInvalidPattern = errors.New("is not a name, prefix* or allPartition('topic')")

func compileRestriction(r *Restriction) ([]pattern, error) {
	var out []pattern
	for i := range fieldCount {
		value := r.field(i)
		if value == "" {
			continue
		}
		p, err := parsePattern(i, value)
		if err != nil {
			return nil, fmt.Errorf("%s %w", fieldNames[i], err)
		}
		out = append(out, p)
	}
	return out, nil
}

func parsePattern(field int, value string) (pattern, error) {
	if len(value) > maxRestrictionValue {
		return pattern{}, fmt.Errorf("is longer than %d bytes", maxRestrictionValue)
	}
	if name, ok := strings.CutPrefix(value, "allPartition("); ok {
		name, ok = unquote(strings.TrimSuffix(name, ")"))
		if !ok || !strings.HasSuffix(value, ")") {
			return pattern{}, errInvalidPattern
		}
		if field != fieldTopic {
			return pattern{}, errors.New("cannot be an allPartition expression, because only a topic has partitions")
		}
		return pattern{field, patternPartitions, name}, nil
	}
	if strings.ContainsAny(value, "()'\"\n\r\t") {
		return pattern{}, errInvalidPattern
	}
	if prefix, ok := strings.CutSuffix(value, "*"); ok {
		if strings.Contains(prefix, "*") {
			return pattern{}, errInvalidPattern
		}
		return pattern{field, patternPrefix, prefix}, nil
	}
	if strings.Contains(value, "*") {
		return pattern{}, errInvalidPattern
	}
	return pattern{field, patternExact, value}, nil
}

// unquote returns the name in 'name' or "name".
func unquote(s string) (string, bool) {
	if len(s) < 3 || (s[0] != '\'' && s[0] != '"') || s[len(s)-1] != s[0] {
		return "", false
	}
	name := s[1 : len(s)-1]
	return name, !strings.ContainsAny(name, `'"()*\`)
}

// matches compares the pattern with a name. An empty name does not match, because the call
// is then about a larger resource than the pattern.
func (p *pattern) matches(name string) bool {
	if name == "" {
		return false
	}
	switch p.kind {
	case patternPrefix:
		return strings.HasPrefix(name, p.text)
	case patternPartitions:
		rest, ok := strings.CutPrefix(name, p.text)
		return ok && (rest == "" || isPartition(rest))
	default:
		return name == p.text
	}
}

// isPartition reports whether a suffix is -partition-<number> without leading zeros.
func isPartition(suffix string) bool {
	digits, ok := strings.CutPrefix(suffix, partitionSuffix)
	if !ok || digits == "" || len(digits) > 10 || (digits[0] == '0' && digits != "0") {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// covers reports whether p matches every name that other matches.
func (p *pattern) covers(other *pattern) bool {
	switch {
	case *p == *other:
		return true
	case p.kind == patternPrefix:
		return strings.HasPrefix(other.text, p.text)
	case p.kind == patternPartitions:
		return other.kind == patternExact && p.matches(other.text)
	}
	return false
}

// matchAll reports whether all patterns of a restriction match a scope.
func matchAll(patterns []pattern, scope *Scope) bool {
	for i := range patterns {
		if !patterns[i].matches(scope.field(patterns[i].field)) {
			return false
		}
	}
	return true
}

// mayMatchWithin reports whether something within scope could match.
func mayMatchWithin(patterns []pattern, scope *Scope) bool {
	for i := range patterns {
		if name := scope.field(patterns[i].field); name != "" && !patterns[i].matches(name) {
			return false
		}
	}
	return true
}

// coversAll reports whether the restriction narrow is within the restriction wide.
func coversAll(wide, narrow []pattern) bool {
	for i := range wide {
		covered := false
		for j := range narrow {
			if narrow[j].field == wide[i].field && wide[i].covers(&narrow[j]) {
				covered = true
				break
			}
		}
		if !covered {
			return false
		}
	}
	return true
}
