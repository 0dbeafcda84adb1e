package jsontree

import (
	"errors"
	"slices"
	"strings"
)

// Failures of a Writer.
var (
	ErrDeepOutput = errors.New("the printed JSON is nested too deeply")
	ErrLongOutput = errors.New("the printed JSON is too long")
)

// Writer prints compact JSON as Java's library does. The first failure stays in
// Err and stops further output. Of the fields Limit has to be set.
type Writer struct {
	Buf   []byte
	Limit int // of Buf, in bytes
	Depth int // of nesting; 0 is no limit
	Err   error
	// Number appends a number as it is to be printed; nil prints it as it was
	// written.
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

// check notices an output that has grown past its limit.
func (w *Writer) check() {
	if len(w.Buf) > w.Limit && w.Err == nil {
		w.Err = ErrLongOutput
	}
}

// Comma separates an entry from the one before it, if there is one.
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

// Text writes a JSON string: only quotes, backslashes and control characters
// are escaped, in particular not <, > and &.
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

// Value writes a value with the members of its objects as they stand, or sorted
// by key.
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

// Sorted returns the positions of the members in the order of their keys, which
// is Java's.
func (l *List) Sorted() []int {
	order := make([]int, len(l.Keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return CompareUTF16(l.Keys[a], l.Keys[b]) })
	return order
}
