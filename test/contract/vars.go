package contract

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Vars are a conversation's variables: JSON values by name.
type Vars map[string]any

func (v Vars) clone() Vars { return maps.Clone(v) }

// Template is a variable whose text is expanded at each use.
type Template string

// maxNesting bounds how deep templates may refer to templates.
const maxNesting = 8

// placeholder matches {{…}}. Single braces, as in regular expressions, may be inside.
var placeholder = regexp.MustCompile(`\{\{(?:[^{}]|\{[^{}]*\})+\}\}`)

// expand replaces the placeholders of a request. A variable that is not set is an error.
func (v Vars) expand(text string) (string, error) {
	var failure error
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, err := v.eval(strings.TrimSpace(found[2 : len(found)-2]))
		if err != nil && failure == nil {
			failure = err
		}
		return value
	})
	return out, failure
}

func (v Vars) eval(expression string) (string, error) {
	if words := strings.Fields(expression); len(words) > 1 {
		return compute(words)
	}
	name, filter, filtered := strings.Cut(expression, "|")
	value, ok := v[name]
	if !ok {
		return "", fmt.Errorf("variable %s is not set", name)
	}
	text := plain(value)
	if template, ok := value.(Template); ok {
		var err error
		if text, err = v.expandTemplate(string(template)); err != nil {
			return "", err
		}
	}
	if !filtered {
		return text, nil
	}
	switch filter {
	case "query":
		return url.QueryEscape(text), nil
	case "path":
		return url.PathEscape(text), nil
	case "base64":
		return base64.StdEncoding.EncodeToString([]byte(text)), nil
	case "json":
		return compactJSON(value), nil
	default:
		return "", fmt.Errorf("unknown filter %s", filter)
	}
}

func (v Vars) expandTemplate(text string) (string, error) {
	for range maxNesting {
		expanded := placeholder.ReplaceAllStringFunc(text, func(found string) string {
			if value, ok := v[strings.TrimSpace(found[2:len(found)-2])]; ok {
				return plain(value)
			}
			return found
		})
		if expanded == text {
			break
		}
		text = expanded
	}
	if unset := placeholder.FindString(text); unset != "" {
		return "", fmt.Errorf("variable %s is not set", unset)
	}
	return text, nil
}

func compute(words []string) (string, error) {
	switch {
	case words[0] == "repeat" && len(words) == 3:
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 0 || n > 64<<20 {
			return "", fmt.Errorf("repeat: %q is not a count", words[2])
		}
		return strings.Repeat(words[1], n), nil
	case words[0] == "time" && len(words) == 2:
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return "", fmt.Errorf("time: %w", err)
		}
		return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339), nil
	default:
		return "", fmt.Errorf("unknown expression %q", strings.Join(words, " "))
	}
}

// plain returns a value as text: strings without quotes, other values as JSON.
func plain(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case Template:
		return string(value)
	}
	return compactJSON(value)
}

func compactJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // unreachable: values come from JSON
	}
	return string(text)
}

// expandOutsideStrings replaces the placeholders of an expected body that are outside
// strings by JSON values. Placeholders inside strings are left to the matcher.
func (v Vars) expandOutsideStrings(text string) (string, error) {
	var out strings.Builder
	for text != "" {
		quote := strings.IndexByte(text, '"')
		if quote < 0 {
			quote = len(text)
		}
		expanded, err := v.expandJSON(text[:quote])
		if err != nil {
			return "", err
		}
		out.WriteString(expanded)
		end := quote + stringLength(text[quote:])
		out.WriteString(text[quote:end])
		text = text[end:]
	}
	return out.String(), nil
}

func (v Vars) expandJSON(text string) (string, error) {
	var failure error
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSpace(found[2 : len(found)-2])
		value, ok := v[name]
		if !ok && failure == nil {
			failure = fmt.Errorf("variable %s is not set", name)
		}
		return compactJSON(value)
	})
	return out, failure
}

// stringLength returns the length of the JSON string at the start of text, including
// its quotes, or 0 for empty text.
func stringLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
