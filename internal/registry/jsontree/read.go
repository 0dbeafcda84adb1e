package jsontree

import "strings"

// Limits are the limits of Read. A zero means no limit, except for Depth.
type Limits struct {
	Depth       int  // nesting of arrays and objects
	Values      int  // values in all
	NumberBytes int  // length of one number
	Comments    bool // allow // and /* */ before and between tokens
}

// reader is a strict JSON parser, except that it can allow comments.
type reader struct {
	Limits
	text   string
	pos    int
	depth  int
	values int
}

// Read parses the value at the beginning of a text, and returns it with the rest of the
// text. The value is nil if the text has only white space and comments. The text must be
// valid UTF-8. Every error is a *SyntaxError.
func Read(text string, limits Limits) (v *Value, rest string, err error) {
	r := &reader{Limits: limits, text: text}
	if err := r.skip(); err != nil {
		return nil, "", err
	}
	if r.pos == len(text) {
		return nil, "", nil
	}
	root, err := r.value()
	if err != nil {
		return nil, "", err
	}
	return &root, text[r.pos:], nil
}

// skip skips white space and comments.
func (r *reader) skip() error {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		case '/':
			if !r.Comments {
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
			return r.fail(OpenComment)
		}
		r.pos += end + 4
		return nil
	}
	return r.fail(BadComment)
}

func (r *reader) value() (Value, error) {
	if r.values++; r.Values > 0 && r.values > r.Values {
		return Value{}, r.fail(TooManyValues)
	}
	if r.pos >= len(r.text) {
		return Value{}, r.fail(NoValue)
	}
	switch c := r.text[r.pos]; {
	case c == '"':
		s, err := r.string()
		return Value{Kind: String, Text: s}, err
	case c == '{':
		return r.container(Object, '}')
	case c == '[':
		return r.container(Array, ']')
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	case isWordByte(c):
		return r.literal()
	}
	return Value{}, r.fail(NoValue)
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func (r *reader) literal() (Value, error) {
	start := r.pos
	for r.pos < len(r.text) && isWordByte(r.text[r.pos]) {
		r.pos++
	}
	switch word := r.text[start:r.pos]; word {
	case "null":
		return Value{Kind: Null}, nil
	case "true":
		return Value{Kind: True}, nil
	case "false":
		return Value{Kind: False}, nil
	default:
		r.pos = start
		err := r.fail(UnknownWord)
		err.Word = word
		return Value{}, err
	}
}

// container reads an array or an object, including the opening bracket.
func (r *reader) container(kind Kind, end byte) (Value, error) {
	if r.depth++; r.depth > r.Depth {
		return Value{}, r.fail(TooDeep)
	}
	r.pos++
	list := &List{}
	for first := true; ; first = false {
		if err := r.skip(); err != nil {
			return Value{}, err
		}
		if r.at(end) {
			r.pos++
			r.depth--
			return Value{Kind: kind, List: list}, nil
		}
		if !first {
			if !r.at(',') {
				err := r.fail(NoComma)
				err.Close = end
				return Value{}, err
			}
			r.pos++
			if err := r.skip(); err != nil {
				return Value{}, err
			}
		}
		if err := r.entry(kind, list); err != nil {
			return Value{}, err
		}
	}
}

// entry reads one element of an array or one member of an object.
func (r *reader) entry(kind Kind, list *List) error {
	var key string
	if kind == Object {
		var err error
		if key, err = r.key(); err != nil {
			return err
		}
	}
	v, err := r.value()
	if err != nil {
		return err
	}
	if kind == Object {
		list.Put(key, v)
	} else {
		list.Values = append(list.Values, v)
	}
	return nil
}

// key reads the key of a member and the colon after it.
func (r *reader) key() (string, error) {
	if !r.at('"') {
		return "", r.fail(NoMemberName)
	}
	key, err := r.string()
	if err != nil {
		return "", err
	}
	if err := r.skip(); err != nil {
		return "", err
	}
	if !r.at(':') {
		return "", r.fail(NoColon)
	}
	r.pos++
	return key, r.skip()
}

// at reports whether c is the next byte.
func (r *reader) at(c byte) bool { return r.pos < len(r.text) && r.text[r.pos] == c }

// number reads a number. JSON has no NaN, Infinity, leading zeros or leading plus.
func (r *reader) number() (Value, error) {
	start := r.pos
	if r.at('-') {
		r.pos++
	}
	whole := r.pos
	if r.digits() == 0 {
		return Value{}, r.fail(NoDigit)
	}
	if r.pos-whole > 1 && r.text[whole] == '0' {
		r.pos = whole
		return Value{}, r.fail(LeadingZero)
	}
	if r.at('.') {
		r.pos++
		if r.digits() == 0 {
			return Value{}, r.fail(NoFractionDigit)
		}
	}
	if r.at('e') || r.at('E') {
		r.pos++
		if r.at('+') || r.at('-') {
			r.pos++
		}
		if r.digits() == 0 {
			return Value{}, r.fail(NoExponentDigit)
		}
	}
	if r.pos < len(r.text) && isWordByte(r.text[r.pos]) {
		return Value{}, r.fail(TrailingCharacter)
	}
	text := r.text[start:r.pos]
	if r.NumberBytes > 0 && len(text) > r.NumberBytes {
		err := r.fail(NumberTooLong)
		err.Length = len(text)
		return Value{}, err
	}
	return Value{Kind: Number, Text: text}, nil
}

// digits skips digits and returns their number.
func (r *reader) digits() int {
	start := r.pos
	for r.pos < len(r.text) && r.text[r.pos] >= '0' && r.text[r.pos] <= '9' {
		r.pos++
	}
	return r.pos - start
}
