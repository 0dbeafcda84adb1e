package jsontree

import (
	"errors"
	"slices"
	"strings"
)

// The errors of a Writer.
var (
	ErrDeepOutput = errors.New("printed JSON is nested too deeply")
	ErrLongOutput = errors.New("printed JSON is too long")
)

// Writer prints compact JSON as Jackson, Java's JSON library, does. The first error is kept
// in Err and stops further output. Limit must be set.
type Writer struct {
	Buf   []byte
	Limit int // maximum of len(Buf)
	Depth int // maximum nesting; 0 means no limit
	Err   error
	// Number appends the printed form of a number; nil prints it as it was written.
	Number func(dst []byte, text string) []byte

	depth int
}

// Open begins an array or object.
func (w *Writer) Open(c byte) {
	if w.depth++; w.Depth > 0 && w.depth > w.Depth && w.Err == nil {
		w.Err = ErrDeepOutput
	}
	w.Buf = append(w.Buf, c)
}

// Close ends an array or object.
func (w *Writer) Close(c byte) {
	w.depth--
	w.Buf = append(w.Buf, c)
	w.check()
}

// check sets Err if the output is longer than its limit.
func (w *Writer) check() {
	if len(w.Buf) > w.Limit && w.Err == nil {
		w.Err = ErrLongOutput
	}
}

// Comma writes a comma, unless the entry is the first of its array or object.
func (w *Writer) Comma() {
	if n := len(w.Buf); n > 0 && w.Buf[n-1] != '{' && w.Buf[n-1] != '[' && w.Buf[n-1] != ':' {
		w.Buf = append(w.Buf, ',')
	}
}

// Key begins a member of an object.
func (w *Writer) Key(k string) {
	w.Comma()
	w.Text(k)
	w.Buf = append(w.Buf, ':')
}

const hexDigits = "0123456789ABCDEF"

// Text writes a JSON string. It escapes only quotes, backslashes and control characters, in
// particular not <, > and &.
func (w *Writer) Text(s string) {
	if len(s) > w.Limit {
		s, w.Err = strings.ToValidUTF8(s[:w.Limit], ""), ErrLongOutput
	}
	w.Buf = append(w.Buf, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.Buf = append(append(w.Buf, s[from:i]...), '\\')
		if at := strings.IndexByte(escapeMeanings, c); at >= 0 {
			w.Buf = append(w.Buf, escapeLetters[at])
		} else {
			w.Buf = append(w.Buf, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	w.Buf = append(append(w.Buf, s[from:]...), '"')
	w.check()
}

// Value writes a value, with the members of its objects in their order or sorted by key.
func (w *Writer) Value(v *Value, sorted bool) {
	if w.Err != nil {
		return
	}
	switch v.Kind {
	case Null:
		w.Buf = append(w.Buf, "null"...)
	case False:
		w.Buf = append(w.Buf, "false"...)
	case True:
		w.Buf = append(w.Buf, "true"...)
	case Number:
		if w.Number != nil {
			w.Buf = w.Number(w.Buf, v.Text)
		} else {
			w.Buf = append(w.Buf, v.Text...)
		}
	case String:
		w.Text(v.Text)
	case Array:
		w.Open('[')
		for i := range v.List.Values {
			w.Comma()
			w.Value(&v.List.Values[i], sorted)
		}
		w.Close(']')
	case Object:
		w.object(v.List, sorted)
	}
}

func (w *Writer) object(l *List, sorted bool) {
	w.Open('{')
	if sorted {
		for _, i := range l.Sorted() {
			w.Key(l.Keys[i])
			w.Value(&l.Values[i], sorted)
		}
	} else {
		for i, key := range l.Keys {
			w.Key(key)
			w.Value(&l.Values[i], sorted)
		}
	}
	w.Close('}')
}

// Sorted returns the positions of the members, sorted by key in Java's order.
func (l *List) Sorted() []int {
	order := make([]int, len(l.Keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return CompareUTF16(l.Keys[a], l.Keys[b]) })
	return order
}
