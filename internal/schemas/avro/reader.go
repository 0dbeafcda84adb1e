package avro

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// reader reads JSON strictly, except that it can allow comments between the
// tokens, as Java's library does for a schema.
type reader struct {
	text     string
	pos      int
	depth    int
	values   int
	comments bool
}

// readSchemaJSON reads the JSON of a schema.
func readSchemaJSON(text string) (*value, error) {
	return readJSON(&reader{text: text, comments: true})
}

// readDatumJSON reads the JSON of a message.
func readDatumJSON(text string) (*value, error) {
	return readJSON(&reader{text: text})
}

// readJSON reads one JSON value and refuses anything after it. A text of white
// space only has no value and gives nil.
func readJSON(r *reader) (*value, error) {
	if err := r.skip(); err != nil {
		return nil, err
	}
	if r.pos == len(r.text) {
		return nil, nil
	}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	// Java trims control characters here, too, and allows no comment.
	rest := strings.TrimLeftFunc(r.text[r.pos:], func(c rune) bool { return c <= ' ' })
	if rest != "" {
		return nil, invalid("dangling content after end of %s: %s", r.subject(), shorten(rest))
	}
	return &v, nil
}

// subject names what is being read.
func (r *reader) subject() string {
	if r.comments {
		return "schema"
	}
	return "message"
}

func (r *reader) fail(format string, args ...any) error {
	line := 1 + strings.Count(r.text[:r.pos], "\n")
	column := 1 + utf8.RuneCountInString(r.text[strings.LastIndexByte(r.text[:r.pos], '\n')+1:r.pos])
	return invalid("%s at line %d, column %d", fmt.Sprintf(format, args...), line, column)
}

// unexpected is the error for whatever stands at the current position.
func (r *reader) unexpected(want string) error {
	if r.pos >= len(r.text) {
		return r.fail("Unexpected end-of-input: was expecting %s", want)
	}
	c, _ := utf8.DecodeRuneInString(r.text[r.pos:])
	return r.fail("Unexpected character (%q (code %d)): was expecting %s", c, c, want)
}

// skip passes white space and comments.
func (r *reader) skip() error {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		case '/':
			if !r.comments {
				return nil
			}
			if err := r.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (r *reader) comment() error {
	rest := r.text[r.pos:]
	switch {
	case strings.HasPrefix(rest, "//"):
		if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
			r.pos += end
		} else {
			r.pos = len(r.text)
		}
		return nil
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			return r.fail("Unexpected end-of-input in a comment")
		}
		r.pos += end + 4
		return nil
	}
	return r.unexpected("a value or a comment")
}

func (r *reader) value() (value, error) {
	if r.values++; r.values > maxJSONValues && r.comments {
		return value{}, invalid("the schema has more than %d JSON values", maxJSONValues)
	}
	if r.pos >= len(r.text) {
		return value{}, r.unexpected("a value")
	}
	switch c := r.text[r.pos]; {
	case c == '"':
		s, err := r.string()
		return value{kind: valueString, text: s}, err
	case c == '{':
		return r.container(valueObject, '}')
	case c == '[':
		return r.container(valueArray, ']')
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_':
		return r.literal()
	}
	return value{}, r.unexpected("a value")
}

func (r *reader) literal() (value, error) {
	start := r.pos
	for r.pos < len(r.text) && isNameByte(r.text[r.pos]) {
		r.pos++
	}
	switch word := r.text[start:r.pos]; word {
	case "null":
		return value{kind: valueNull}, nil
	case "true":
		return value{kind: valueTrue}, nil
	case "false":
		return value{kind: valueFalse}, nil
	default:
		r.pos = start
		return value{}, r.fail("Unrecognized token '%s': was expecting (JSON String, Number, Array, Object"+
			" or token 'null', 'true' or 'false')", shorten(word))
	}
}

// container reads an array or an object, opening bracket included.
func (r *reader) container(kind valueKind, end byte) (value, error) {
	if r.depth++; r.depth > maxJSONDepth {
		return value{}, errDepth
	}
	r.pos++
	list := &valueList{}
	for first := true; ; first = false {
		if err := r.skip(); err != nil {
			return value{}, err
		}
		if r.pos < len(r.text) && r.text[r.pos] == end {
			r.pos++
			r.depth--
			return value{kind: kind, list: list}, nil
		}
		if !first {
			if r.pos >= len(r.text) || r.text[r.pos] != ',' {
				return value{}, r.unexpected(fmt.Sprintf("comma to separate entries, or '%c'", end))
			}
			r.pos++
			if err := r.skip(); err != nil {
				return value{}, err
			}
		}
		if err := r.entry(kind, list); err != nil {
			return value{}, err
		}
	}
}

// entry reads one element of an array or one member of an object.
func (r *reader) entry(kind valueKind, list *valueList) error {
	var key string
	if kind == valueObject {
		if r.pos >= len(r.text) || r.text[r.pos] != '"' {
			return r.unexpected("double-quote to start field name")
		}
		var err error
		if key, err = r.string(); err != nil {
			return err
		}
		if err := r.skip(); err != nil {
			return err
		}
		if r.pos >= len(r.text) || r.text[r.pos] != ':' {
			return r.unexpected("a colon to separate field name and value")
		}
		r.pos++
		if err := r.skip(); err != nil {
			return err
		}
	}
	v, err := r.value()
	if err != nil {
		return err
	}
	if kind == valueObject {
		list.put(key, v)
	} else {
		list.values = append(list.values, v)
	}
	return nil
}

// string reads a string, quotes included, and returns its content. A surrogate
// without its partner becomes U+FFFD, as no Go string can hold it.
func (r *reader) string() (string, error) {
	start := r.pos + 1
	for i := start; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			return r.text[start:i], nil
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			r.pos = i
			return "", r.fail("Illegal unquoted character ((CTRL-CHAR, code %d)): has to be escaped using"+
				" backslash to be included in string value", c)
		}
	}
	r.pos = len(r.text)
	return "", r.unexpected("closing quote for a string value")
}

// escaped finishes a string whose first escape stands at i.
func (r *reader) escaped(start, i int) (string, error) {
	buf := append(make([]byte, 0, 2*(i-start)+16), r.text[start:i]...)
	for i < len(r.text) {
		c := r.text[i]
		switch {
		case c == '"':
			r.pos = i + 1
			return string(buf), nil
		case c < ' ':
			r.pos = i
			return "", r.fail("Illegal unquoted character ((CTRL-CHAR, code %d)): has to be escaped using"+
				" backslash to be included in string value", c)
		case c != '\\':
			buf = append(buf, c)
			i++
			continue
		}
		if i+1 >= len(r.text) {
			break
		}
		if plain := strings.IndexByte(escapeLetters, r.text[i+1]); plain >= 0 {
			buf = append(buf, escapeMeanings[plain])
			i += 2
			continue
		}
		c1, ok := unicodeEscape(r.text[i:])
		if !ok {
			r.pos = i
			return "", r.fail("Unrecognized character escape")
		}
		i += 6
		if utf16.IsSurrogate(c1) {
			if c2, ok := unicodeEscape(r.text[i:]); ok && utf16.DecodeRune(c1, c2) != utf8.RuneError {
				c1 = utf16.DecodeRune(c1, c2)
				i += 6
			}
		}
		buf = utf8.AppendRune(buf, c1) // a lone surrogate becomes U+FFFD
	}
	r.pos = len(r.text)
	return "", r.unexpected("closing quote for a string value")
}

const (
	escapeLetters  = `"\/bfnrt`
	escapeMeanings = "\"\\/\b\f\n\r\t"
)

// unicodeEscape reads the \uXXXX that s starts with.
func unicodeEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}
