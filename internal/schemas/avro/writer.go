package avro

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errDepth is what Java's JSON library says of a text nested too deeply, both
// when it reads and when it writes.
var errDepth = invalid("Document nesting depth (%d) exceeds the maximum allowed (%d)", maxJSONDepth+1, maxJSONDepth)

var errPrintedSize = invalid("the printed schema is longer than %d bytes", maxPrintedBytes)

// writer prints compact JSON as Java's library does. The first failure stays in
// err and stops further output.
type writer struct {
	buf   []byte
	limit int // of buf, in bytes
	depth int
	err   error
}

// open begins an array or object.
func (w *writer) open(c byte) {
	if w.depth++; w.depth > maxJSONDepth && w.err == nil {
		w.err = errDepth
	}
	w.buf = append(w.buf, c)
}

// close ends an array or object.
func (w *writer) close(c byte) {
	w.depth--
	w.buf = append(w.buf, c)
	w.check()
}

// check notices an output that has grown past its limit.
func (w *writer) check() {
	if len(w.buf) > w.limit && w.err == nil {
		w.err = errPrintedSize
	}
}

// comma separates an entry from the one before it, if there is one.
func (w *writer) comma() {
	if n := len(w.buf); n > 0 && w.buf[n-1] != '{' && w.buf[n-1] != '[' && w.buf[n-1] != ':' {
		w.buf = append(w.buf, ',')
	}
}

// key begins a member of an object.
func (w *writer) key(k string) {
	w.comma()
	w.string(k)
	w.buf = append(w.buf, ':')
}

// member writes a member whose value is a string.
func (w *writer) member(k, s string) {
	w.key(k)
	w.string(s)
}

const hexDigits = "0123456789ABCDEF"

// string writes a JSON string: only quotes, backslashes and control characters
// are escaped, in particular not <, > and &.
func (w *writer) string(s string) {
	if len(s) > w.limit {
		s, w.err = strings.ToValidUTF8(s[:w.limit], ""), errPrintedSize
	}
	w.buf = append(w.buf, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.buf = append(append(w.buf, s[from:i]...), '\\')
		if at := strings.IndexByte(escapeMeanings, c); at >= 0 {
			w.buf = append(w.buf, escapeLetters[at])
		} else {
			w.buf = append(w.buf, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	w.buf = append(append(w.buf, s[from:]...), '"')
	w.check()
}

// value writes a JSON value as it was read.
func (w *writer) value(v *value) { w.tree(v, false) }

// sortedValue writes a JSON value with the members of its objects by key.
func (w *writer) sortedValue(v *value) { w.tree(v, true) }

func (w *writer) tree(v *value, sorted bool) {
	if w.err != nil {
		return
	}
	switch v.kind {
	case valueNull:
		w.buf = append(w.buf, "null"...)
	case valueFalse:
		w.buf = append(w.buf, "false"...)
	case valueTrue:
		w.buf = append(w.buf, "true"...)
	case valueInt, valueLong, valueBig, valueDouble:
		w.buf = append(w.buf, v.text...)
	case valueString:
		w.string(v.text)
	case valueArray:
		w.open('[')
		for i := range v.list.values {
			w.comma()
			w.tree(&v.list.values[i], sorted)
		}
		w.close(']')
	case valueObject:
		w.open('{')
		for _, i := range v.list.order(sorted) {
			w.key(v.list.keys[i])
			w.tree(&v.list.values[i], sorted)
		}
		w.close('}')
	}
}

// order returns the positions of the members, as they stand or by key.
func (l *valueList) order(sorted bool) []int {
	order := make([]int, len(l.keys))
	for i := range order {
		order[i] = i
	}
	if sorted {
		slices.SortFunc(order, func(a, b int) int { return compareJava(l.keys[a], l.keys[b]) })
	}
	return order
}

// compareJava compares strings as Java does, by UTF-16 units. That differs from
// Go only where characters beyond U+FFFF meet those from U+E000 up.
func compareJava(a, b string) int {
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

// shorten cuts a text that is quoted in an error.
func shorten(s string) string {
	if len(s) <= maxQuotedBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuotedBytes], "") + "..."
}
