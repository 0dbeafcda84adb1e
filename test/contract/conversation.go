package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
)

// Conversation is a parsed conversation file.
type Conversation struct {
	Name  string
	About string
	Cases []map[string]any
	Steps []Step
}

// Step is one request and the expected response.
type Step struct {
	Name          string
	Retry         time.Duration
	Timeout       time.Duration
	RepeatFrom    string        // step to repeat from when the response is not as expected
	RepeatTimeout time.Duration // how long to repeat from it

	Method  string
	Path    string
	Headers []Header
	Body    string
	Raw     string // name of a saved body to send instead of Body

	Want Want
}

// Header is one header line. A list of them preserves order and repetition.
type Header struct{ Name, Value string }

// Want is the expected response.
type Want struct {
	Status   *regexp.Regexp
	Headers  []Header
	BodyKind string
	Body     string
	Exact    bool
	Save     string
}

const defaultTimeout = 30 * time.Second

// Load reads a conversation from a file.
func Load(path string) (*Conversation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text, os.DirFS(filepath.Dir(path)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Name = strings.TrimSuffix(filepath.Base(path), ".txtar")
	return c, nil
}

func parseStep(name, text string) (Step, error) {
	step := Step{Name: name, Timeout: defaultTimeout}
	request, response, ok := cutLine(text, "==>")
	if !ok {
		return step, errors.New("no ==> line between request and response")
	}
	if err := step.parseRequest(request); err != nil {
		return step, fmt.Errorf("request: %w", err)
	}
	if err := step.Want.parse(response); err != nil {
		return step, fmt.Errorf("response: %w", err)
	}
	return step, nil
}

// cutLine splits text at the first line that equals separator.
func cutLine(text, separator string) (before, after string, ok bool) {
	rest := text
	for rest != "" {
		line, next, _ := strings.Cut(rest, "\n")
		if strings.TrimSpace(line) == separator {
			return text[:len(text)-len(rest)], next, true
		}
		rest = next
	}
	return text, "", false
}

func (s *Step) parseRequest(text string) error {
	text, err := directives(text, func(word, arg string) (err error) {
		switch word {
		case "@retry":
			s.Retry, err = time.ParseDuration(arg)
		case "@timeout":
			s.Timeout, err = time.ParseDuration(arg)
		case "@again":
			space := max(strings.LastIndexByte(arg, ' '), 0) // the step's name may contain spaces too
			s.RepeatFrom = arg[:space]
			s.RepeatTimeout, err = time.ParseDuration(strings.TrimSpace(arg[space:]))
		case "@raw":
			s.Raw = arg
		default:
			return fmt.Errorf("unknown directive %s", word)
		}
		return err
	})
	if err != nil {
		return err
	}
	first, text, _ := strings.Cut(text, "\n")
	var ok bool
	if s.Method, s.Path, ok = strings.Cut(strings.TrimSpace(first), " "); !ok {
		return fmt.Errorf("%q is not a method and a path", first)
	}
	for {
		line, rest, _ := strings.Cut(text, "\n")
		trimmed := strings.TrimSpace(line)
		if trimmed == line || (!strings.HasPrefix(trimmed, "?") && !strings.HasPrefix(trimmed, "&")) {
			break
		}
		s.Path += trimmed
		text = rest
	}
	s.Headers, s.Body, err = headersAndBody(text)
	return err
}

func (w *Want) parse(text string) error {
	text, err := directives(text, func(word, arg string) error {
		switch word {
		case "@body":
			w.BodyKind = arg
		case "@exact":
			w.Exact = true
		case "@save":
			w.Save = arg
		default:
			return fmt.Errorf("unknown directive %s", word)
		}
		return nil
	})
	if err != nil {
		return err
	}
	status, text, _ := strings.Cut(text, "\n")
	if w.Status, err = statusPattern(strings.TrimSpace(status)); err != nil {
		return err
	}
	if w.Headers, w.Body, err = headersAndBody(text); err != nil {
		return err
	}
	return w.inferBodyKind()
}

func (w *Want) inferBodyKind() error {
	switch w.BodyKind {
	case "":
		switch {
		case w.Body == "":
			w.BodyKind = "unchecked"
		case strings.ContainsAny(w.Body[:1], `{["0123456789-tfn`):
			w.BodyKind = "json"
		default:
			return fmt.Errorf("kind of the body %.20q is unclear; set it with @body", w.Body)
		}
	case "json", "yaml", "stream", "text", "contains", "prefix", "empty":
	default:
		return fmt.Errorf("unknown @body %s", w.BodyKind)
	}
	return nil
}

var statusForm = regexp.MustCompile(`^[1-5][0-9x]{2}(\|[1-5][0-9x]{2})*$`)

func statusPattern(text string) (*regexp.Regexp, error) {
	if !statusForm.MatchString(text) {
		return nil, fmt.Errorf("%q is not a status", text)
	}
	return regexp.MustCompile("^(" + strings.ReplaceAll(text, "x", "[0-9]") + ")$"), nil
}

// directives removes the leading lines that begin with @ and passes them to take.
func directives(text string, take func(word, arg string) error) (string, error) {
	for strings.HasPrefix(text, "@") {
		line, rest, _ := strings.Cut(text, "\n")
		word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := take(word, strings.TrimSpace(arg)); err != nil {
			return "", err
		}
		text = rest
	}
	return text, nil
}

func headersAndBody(text string) ([]Header, string, error) {
	var headers []Header
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if strings.TrimSpace(line) == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, "", fmt.Errorf("%q is not a header", line)
		}
		headers = append(headers, Header{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return headers, strings.Trim(text, "\n"), nil
}

func parseCases(text []byte) ([]map[string]any, error) {
	var cases []map[string]any
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		var c map[string]any
		if err := decoder.Decode(&c); err != nil {
			return nil, fmt.Errorf("case %s: %w", line, err)
		}
		if name, ok := c["case"].(string); !ok || name == "" {
			return nil, fmt.Errorf("case %s has no name", line)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func caseFile(f txtar.File) (name string, ok bool) {
	if f.Name == "cases" {
		return "", true
	}
	name, ok = strings.CutPrefix(f.Name, "cases ")
	return strings.TrimSpace(name), ok
}
