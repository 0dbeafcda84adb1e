package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
)

// matcher compares a response with the expected one and collects the differences in
// problems. It adds captured values to vars.
type matcher struct {
	vars     Vars
	exact    bool
	problems []string
}

func (m *matcher) failf(path, format string, args ...any) {
	m.problems = append(m.problems, path+": "+fmt.Sprintf(format, args...))
}

// decodeAll reads a sequence of JSON values and preserves numbers as written.
func decodeAll(text []byte) ([]any, error) {
	var values []any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return values, err
		}
		values = append(values, value)
	}
}

func (m *matcher) value(path string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		m.object(path, want, got)
	case []any:
		m.list(path, want, got)
	case string:
		m.text(path, want, got)
	default:
		if !equal(want, got) {
			m.failf(path, "want %s, got %s", compactJSON(want), brief(got))
		}
	}
}

func (m *matcher) object(path string, want map[string]any, got any) {
	object, ok := got.(map[string]any)
	if !ok {
		m.failf(path, "want an object, got %s", brief(got))
		return
	}
	// In sorted order, so that the first capture of a variable is deterministic.
	for _, key := range slices.Sorted(maps.Keys(want)) {
		wanted := want[key]
		at := path + "." + key
		value, present := object[key]
		switch {
		case wanted == "{{absent}}":
			if present {
				m.failf(at, "must be absent, is %s", brief(value))
			}
		case !present && isLacks(wanted):
		case !present:
			m.failf(at, "is missing")
		default:
			m.value(at, wanted, value)
		}
	}
	if m.exact {
		for key, value := range object {
			if _, known := want[key]; !known {
				m.failf(path+"."+key, "is unexpected, is %s", brief(value))
			}
		}
	}
}

func (m *matcher) list(path string, want []any, got any) {
	list, ok := got.([]any)
	if !ok {
		m.failf(path, "want a list, got %s", brief(got))
		return
	}
	if isLacks(want) {
		for _, unwanted := range want[1:] {
			if at := slices.IndexFunc(list, func(candidate any) bool { return m.try(unwanted, candidate) }); at >= 0 {
				m.failf(fmt.Sprintf("%s[%d]", path, at), "must be absent, is %s", brief(list[at]))
			}
		}
		return
	}
	if len(want) > 0 && (want[0] == "{{contains}}" || want[0] == "{{unordered}}") {
		if want[0] == "{{unordered}}" && len(want)-1 != len(list) {
			m.failf(path, "want %d elements, got %d: %s", len(want)-1, len(list), brief(got))
			return
		}
		m.matchAnyOrder(path, want[1:], list)
		return
	}
	if len(want) != len(list) {
		m.failf(path, "want %d elements, got %d: %s", len(want), len(list), brief(got))
		return
	}
	for i := range want {
		m.value(fmt.Sprintf("%s[%d]", path, i), want[i], list[i])
	}
}

// isLacks reports whether an expected value is a {{lacks}} list.
func isLacks(want any) bool {
	list, ok := want.([]any)
	return ok && len(list) > 0 && list[0] == "{{lacks}}"
}

// matchAnyOrder finds a different element of list for each expected value.
func (m *matcher) matchAnyOrder(path string, want, list []any) {
	list = slices.Clone(list)
	for i, wanted := range want {
		found := slices.IndexFunc(list, func(candidate any) bool { return m.try(wanted, candidate) })
		if found < 0 {
			m.failf(path, "no element matches expected element number %d, %s", i+1, brief(wanted))
			return
		}
		list = slices.Delete(list, found, found+1)
	}
}

// try matches, and keeps captured values only if the match succeeds.
func (m *matcher) try(want, got any) bool {
	attempt := matcher{vars: m.vars.clone(), exact: m.exact}
	attempt.value("", want, got)
	if len(attempt.problems) > 0 {
		return false
	}
	for name, value := range attempt.vars {
		m.vars[name] = value
	}
	return true
}

func (m *matcher) text(path, want string, got any) {
	if whole := placeholder.FindString(want); whole == want && whole != "" {
		m.placeholder(path, strings.TrimSpace(want[2:len(want)-2]), got)
		return
	}
	text, ok := got.(string)
	if !ok {
		m.failf(path, "want %q, got %s", want, brief(got))
		return
	}
	m.mixed(path, want, text)
}

// placeholder matches a string that consists of one placeholder.
func (m *matcher) placeholder(path, word string, got any) {
	if test, ok := typeTests[word]; ok {
		if !test(got) {
			m.failf(path, "want %s, got %s", word, brief(got))
		}
		return
	}
	if expression, ok := strings.CutPrefix(word, "re "); ok {
		pattern, err := regexp.Compile("^(?s:" + expression + ")$")
		switch {
		case err != nil:
			m.failf(path, "%v", err)
		case !pattern.MatchString(plain(got)):
			m.failf(path, "want a match of %s, got %s", expression, brief(got))
		}
		return
	}
	if strings.ContainsAny(word, " |") {
		value, err := m.vars.eval(word)
		switch {
		case err != nil:
			m.failf(path, "%v", err)
		case value != plain(got):
			m.failf(path, "want %q, got %s", value, brief(got))
		}
		return
	}
	value, known := m.vars[word]
	switch {
	case !known && got == nil:
		m.failf(path, "is null, so %s cannot be captured", word)
	case !known:
		m.vars[word] = got
	case !equal(value, got):
		m.failf(path, "want %s (%s), got %s", compactJSON(value), word, brief(got))
	}
}

// mixed matches text with placeholders in it: variables that are set must match their
// values, others capture as little as possible.
func (m *matcher) mixed(path, want, got string) {
	var pattern strings.Builder
	var captures []string
	pattern.WriteString("^(?s:")
	rest := want
	for {
		at := placeholder.FindStringIndex(rest)
		if at == nil {
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		word := strings.TrimSpace(rest[at[0]+2 : at[1]-2])
		rest = rest[at[1]:]
		if expression, ok := strings.CutPrefix(word, "re "); ok {
			pattern.WriteString("(?:" + expression + ")")
		} else if word == "any" {
			pattern.WriteString(".*?")
		} else if value, err := m.vars.eval(word); err == nil {
			pattern.WriteString(regexp.QuoteMeta(value))
		} else {
			captures = append(captures, word)
			pattern.WriteString("(?P<" + word + ">.+?)")
		}
	}
	pattern.WriteString(regexp.QuoteMeta(rest) + ")$")
	compiled, err := regexp.Compile(pattern.String())
	if err != nil {
		m.failf(path, "%v", err)
		return
	}
	found := compiled.FindStringSubmatch(got)
	if found == nil {
		m.failf(path, "want %q, got %q", want, got)
		return
	}
	for _, name := range captures {
		m.vars[name] = found[compiled.SubexpIndex(name)]
	}
}

var typeTests = map[string]func(any) bool{
	"any":    func(v any) bool { return v != nil },
	"string": func(v any) bool { s, ok := v.(string); return ok && s != "" },
	"number": func(v any) bool { _, ok := v.(json.Number); return ok },
	"bool":   func(v any) bool { _, ok := v.(bool); return ok },
	"object": func(v any) bool { _, ok := v.(map[string]any); return ok },
	"array":  func(v any) bool { _, ok := v.([]any); return ok },
	"time": func(v any) bool {
		s, _ := v.(string)
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	},
}

// equal compares JSON values; 1 and 1.0 are equal.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || !equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	default:
		return a == b
	}
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := new(big.Float).SetString(a.String())
	y, okY := new(big.Float).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

func brief(value any) string {
	text := compactJSON(value)
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
}
