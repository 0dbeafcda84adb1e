package jsonschema

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxText bounds a schema or a document; the registry's surface stops at
	// 5 MiB long before.
	maxText = 16 << 20
	// maxDepth bounds nesting of objects and arrays. It is Jackson's limit, so
	// that nothing which other registries store is refused here, and it keeps
	// every recursion over a value shallow.
	maxDepth = 1000
)

type valueKind uint8

const (
	nullValue valueKind = iota
	boolValue
	numberValue
	stringValue
	arrayValue
	objectValue
)

// value is one JSON value as it was written: members in document order, numbers
// as their literal text. A value never changes once parsed.
type value struct {
	kind  valueKind
	truth bool             // a boolean's value
	refs  bool             // a reference keyword occurs in it or below
	hash  uint64           // equal values have equal hashes, see hashing below
	text  string           // a string's content or a number's literal
	keys  []string         // an object's member names
	items []*value         // an object's member values, or an array's elements
	index map[string]int32 // name to position, only for objects of many members
}

// indexFrom is the number of members from which an object carries an index.
const indexFrom = 12

// get returns the member of that name, or nil.
func (v *value) get(name string) *value {
	if v == nil || v.kind != objectValue {
		return nil
	}
	if i := v.find(name); i >= 0 {
		return v.items[i]
	}
	return nil
}

func (v *value) find(name string) int {
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			return int(i)
		}
		return -1
	}
	for i, key := range v.keys {
		if key == name {
			return i
		}
	}
	return -1
}

// str returns the member of that name if it is a string.
func (v *value) str(name string) (string, bool) {
	if m := v.get(name); m != nil && m.kind == stringValue {
		return m.text, true
	}
	return "", false
}

// syntaxError is a failure to read JSON, with its place in the text.
type syntaxError struct {
	line, column int
	what         string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%s at line %d, column %d", e.what, e.line, e.column)
}

// parseValue reads exactly one JSON value. Of duplicate members the last wins
// and keeps the place of the first, as Jackson has it.
func parseValue(text string) (*value, error) {
	p := &parser{text: text}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.text) {
		return nil, p.fail("unexpected text after the JSON value")
	}
	return v, nil
}

type parser struct {
	text string
	pos  int
}

func (p *parser) fail(format string, args ...any) error {
	before := p.text[:min(p.pos, len(p.text))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &syntaxError{line: line, column: column, what: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) (*value, error) {
	if depth > maxDepth {
		return nil, p.fail("JSON is nested deeper than %d levels", maxDepth)
	}
	switch c := p.peek(); {
	case p.pos >= len(p.text):
		return nil, p.fail("unexpected end of JSON")
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.string()
		if err != nil {
			return nil, err
		}
		return &value{kind: stringValue, text: s, hash: hashText('s', s)}, nil
	case c == '-' || (c >= '0' && c <= '9'):
		return p.number()
	}
	for _, literal := range [...]struct {
		word string
		val  value
	}{
		{"true", value{kind: boolValue, truth: true, hash: hashText('b', "true")}},
		{"false", value{kind: boolValue, hash: hashText('b', "false")}},
		{"null", value{kind: nullValue, hash: hashText('z', "")}},
	} {
		if strings.HasPrefix(p.text[p.pos:], literal.word) {
			p.pos += len(literal.word)
			v := literal.val
			return &v, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return nil, p.fail("unexpected character %q", r)
}

func (p *parser) object(depth int) (*value, error) {
	v := &value{kind: objectValue}
	p.pos++
	p.space()
	for p.peek() != '}' || len(v.keys) > 0 {
		if p.peek() != '"' {
			return nil, p.fail("expected a member name in double quotes")
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		p.space()
		if p.peek() != ':' {
			return nil, p.fail("expected ':' after a member name")
		}
		p.pos++
		p.space()
		member, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.put(key, member)
		p.space()
		if p.peek() == '}' {
			break
		}
		if p.peek() != ',' {
			return nil, p.fail("expected ',' or '}' in an object")
		}
		p.pos++
		p.space()
	}
	p.pos++
	v.seal()
	return v, nil
}

func (p *parser) array(depth int) (*value, error) {
	v := &value{kind: arrayValue}
	p.pos++
	p.space()
	for p.peek() != ']' || len(v.items) > 0 {
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
		p.space()
		if p.peek() == ']' {
			break
		}
		if p.peek() != ',' {
			return nil, p.fail("expected ',' or ']' in an array")
		}
		p.pos++
		p.space()
	}
	p.pos++
	v.seal()
	return v, nil
}

func (v *value) put(key string, member *value) {
	if i := v.find(key); i >= 0 {
		v.items[i] = member
		return
	}
	v.keys = append(v.keys, key)
	v.items = append(v.items, member)
	switch n := len(v.keys); {
	case v.index != nil:
		v.index[key] = int32(n - 1)
	case n == indexFrom:
		v.index = make(map[string]int32, 2*n)
		for i, k := range v.keys {
			v.index[k] = int32(i)
		}
	}
}

// seal computes what a finished object or array knows about its insides.
func (v *value) seal() {
	v.hash = mix(uint64(v.kind)+seedA, uint64(len(v.items)))
	for i, item := range v.items {
		if v.kind == objectValue {
			// A sum, so that the order of members does not matter.
			v.hash += mix(hashText('k', v.keys[i]), item.hash)
			v.refs = v.refs || isReferenceKeyword(v.keys[i])
		} else {
			v.hash = mix(v.hash, item.hash)
		}
		v.refs = v.refs || item.refs
	}
}

func isReferenceKeyword(key string) bool {
	return key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef"
}

// number reads a literal by the JSON grammar, which has no NaN, no Infinity, no
// leading zeros and no leading plus.
func (p *parser) number() (*value, error) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	switch {
	case p.peek() == '0':
		p.pos++
	case !p.digits():
		return nil, p.fail("invalid number")
	}
	if p.peek() == '.' {
		p.pos++
		if !p.digits() {
			return nil, p.fail("invalid number: no digit after the decimal point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			return nil, p.fail("invalid number: no digit in the exponent")
		}
	}
	if c := p.peek(); c >= '0' && c <= '9' {
		return nil, p.fail("invalid number: leading zero")
	}
	literal := p.text[start:p.pos]
	return &value{kind: numberValue, text: literal, hash: hashText('n', parseDecimal(literal).key())}, nil
}

func (p *parser) digits() bool {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) string() (string, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			s := p.text[start:p.pos]
			p.pos++
			return strings.ToValidUTF8(s, "\uFFFD"), nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("control character %U in a string", rune(c))
		}
		p.pos++
	}
	return "", p.fail("string is not closed")
}

// escaped reads the rest of a string that holds a backslash.
func (p *parser) escaped(start int) (string, error) {
	var b strings.Builder
	b.WriteString(p.text[start:p.pos])
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case c == '"':
			p.pos++
			return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
		case c < ' ':
			return "", p.fail("control character %U in a string", rune(c))
		case c != '\\':
			b.WriteByte(c)
			p.pos++
			continue
		}
		p.pos++
		if p.peek() == 'u' {
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			continue
		}
		plain := strings.IndexByte(`"\/bfnrt`, p.peek())
		if plain < 0 || p.pos >= len(p.text) {
			return "", p.fail("unknown escape in a string")
		}
		b.WriteByte("\"\\/\b\f\n\r\t"[plain])
		p.pos++
	}
	return "", p.fail("string is not closed")
}

// unicode reads \uXXXX and its second half if it is a surrogate pair; half a
// pair alone has no meaning and becomes U+FFFD.
func (p *parser) unicode() (rune, error) {
	first, err := p.hex()
	if err != nil {
		return 0, err
	}
	if !utf16.IsSurrogate(first) {
		return first, nil
	}
	if strings.HasPrefix(p.text[p.pos:], `\u`) {
		mark := p.pos
		p.pos++
		second, err := p.hex()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, nil
		}
		p.pos = mark
	}
	return utf8.RuneError, nil
}

func (p *parser) hex() (rune, error) {
	p.pos++ // the u
	if p.pos+4 > len(p.text) {
		return 0, p.fail("incomplete \\u escape")
	}
	var r rune
	for range 4 {
		c := p.text[p.pos]
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, p.fail("invalid \\u escape")
		}
		p.pos++
	}
	return r, nil
}

// Hashing. Two values of one process are taken as equal when their 64-bit
// hashes are. The seed is random and never leaves the process, so nobody can
// aim at a collision, and by chance a union of a thousand branches meets one
// once in 10^13 tries. Members count without their order, numbers by value.
var (
	hashSeed = maphash.MakeSeed()
	seedA    = maphash.String(hashSeed, "a") | 1
	seedB    = maphash.String(hashSeed, "b") | 1
)

func hashText(kind byte, s string) uint64 {
	return mix(maphash.String(hashSeed, s), uint64(kind))
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^seedA, b^seedB)
	hi, lo = bits.Mul64(hi^lo^seedB, (a+b)|1)
	return hi ^ lo
}
