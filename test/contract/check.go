package contract

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

func (w *Want) check(response *http.Response, body []byte, vars Vars) []string {
	m := &matcher{vars: vars, exact: w.Exact}
	if status := strconv.Itoa(response.StatusCode); !w.Status.MatchString(status) {
		m.failf("status", "want %s, got %s", strings.Trim(w.Status.String(), "^()$"), status)
	}
	for _, h := range w.Headers {
		m.header(h, response.Header)
	}
	if err := m.body(w, body); err != nil {
		m.failf("body", "%v", err)
	}
	return m.problems
}

func (m *matcher) header(want Header, got http.Header) {
	values := got.Values(want.Name)
	if want.Value == "{{absent}}" {
		if len(values) > 0 {
			m.failf("header "+want.Name, "must be absent, is %q", values)
		}
		return
	}
	if len(values) == 0 {
		m.failf("header "+want.Name, "is missing")
		return
	}
	for _, value := range values {
		if m.try(want.Value, value) {
			return
		}
	}
	m.failf("header "+want.Name, "want %q, got %q", want.Value, values)
}

func (m *matcher) body(w *Want, got []byte) error {
	switch w.BodyKind {
	case "empty":
		if len(got) > 0 {
			return fmt.Errorf("want none, got %d bytes", len(got))
		}
	case "text":
		m.mixed("body", w.Body, strings.TrimSuffix(string(got), "\n"))
	case "contains":
		for line := range strings.Lines(w.Body) {
			text, err := m.vars.expand(strings.TrimRight(line, "\n"))
			if err != nil {
				return err
			}
			if !bytes.Contains(got, []byte(text)) {
				m.failf("body", "does not contain %q", text)
			}
		}
	case "prefix":
		prefix, err := strconv.Unquote(w.Body)
		if err != nil {
			return fmt.Errorf("%s is not a quoted string", w.Body)
		}
		if !bytes.HasPrefix(got, []byte(prefix)) {
			m.failf("body", "want prefix %q, got %.40q", prefix, got)
		}
	case "json", "yaml", "stream":
		return m.structured(w, got)
	}
	return nil
}

func (m *matcher) structured(w *Want, got []byte) error {
	text, err := m.vars.expandOutsideStrings(w.Body)
	if err != nil {
		return err
	}
	expected := []byte(text)
	if w.BodyKind == "yaml" {
		if bytes.HasPrefix(bytes.TrimSpace(got), []byte("{")) {
			return errors.New("want YAML, got JSON")
		}
		if expected, err = yaml.YAMLToJSON(expected); err != nil {
			return err
		}
		if got, err = yaml.YAMLToJSON(got); err != nil {
			return fmt.Errorf("response is not YAML: %w", err)
		}
	}
	wanted, err := decodeAll(expected)
	if err != nil {
		return fmt.Errorf("expected body is not JSON: %w", err)
	}
	values, err := decodeAll(got)
	if err != nil {
		return fmt.Errorf("response is not JSON: %w", err)
	}
	if w.BodyKind == "stream" {
		m.stream(wanted, values)
		return nil
	}
	if len(values) != 1 || len(wanted) != 1 {
		return fmt.Errorf("want one JSON value, got %d", len(values))
	}
	m.value("body", wanted[0], values[0])
	return nil
}

// stream finds the expected values in order; other values may be between them.
func (m *matcher) stream(wanted, values []any) {
	at := 0
	for i, want := range wanted {
		for at < len(values) && !m.try(want, values[at]) {
			at++
		}
		if at == len(values) {
			m.failf("body", "value %d, %s, is not in the stream of %d values", i+1, brief(want), len(values))
			return
		}
		at++
	}
}
