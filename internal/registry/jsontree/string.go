package jsontree

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The characters that may follow a backslash, and the characters that they mean.
const (
	escapeLetters  = `"\/bfnrt`
	escapeMeanings = "\"\\/\b\f\n\r\t"
)

// string reads a string, including its quotes, and returns its content. An unpaired
// surrogate becomes U+FFFD, because a Go string cannot contain it. A string without escapes
// is a substring of the text and needs no allocation; see BenchmarkRead.
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
			return "", r.fail(ControlCharacter)
		}
	}
	r.pos = len(r.text)
	return "", r.fail(OpenString)
}

// escaped reads the rest of a string whose first escape is at i.
func (r *reader) escaped(start, i int) (string, error) {
	buf := append(make([]byte, 0, 2*(i-start)+16), r.text[start:i]...)
	for i < len(r.text) {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			return string(buf), nil
		case c < ' ':
			r.pos = i
			return "", r.fail(ControlCharacter)
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
		c, ok := unicodeEscape(r.text[i:])
		if !ok {
			r.pos = i
			return "", r.fail(escapeProblem(r.text[i:]))
		}
		i += 6
		if utf16.IsSurrogate(c) {
			if second, ok := unicodeEscape(r.text[i:]); ok && utf16.DecodeRune(c, second) != utf8.RuneError {
				c = utf16.DecodeRune(c, second)
				i += 6
			}
		}
		buf = utf8.AppendRune(buf, c) // a lone surrogate becomes U+FFFD
	}
	r.pos = len(r.text)
	return "", r.fail(OpenString)
}

// unicodeEscape reads the \uXXXX that s starts with.
func unicodeEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// escapeProblem returns the problem of the invalid escape that s starts with.
func escapeProblem(s string) Problem {
	switch {
	case s[1] != 'u':
		return BadEscape
	case len(s) < 6:
		return ShortUnicodeEscape
	}
	return BadUnicodeEscape
}

// CompareUTF16 compares strings as Java does, by UTF-16 units. The result differs from Go's
// only for characters above U+FFFF compared with characters from U+E000 to U+FFFF.
func CompareUTF16(a, b string) int {
	if isASCII(a) || isASCII(b) {
		return strings.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
