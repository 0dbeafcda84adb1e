// Package output is how the commands print: tables, JSON, YAML and names, colours
// and progress where a person looks on, and nothing of that kind in pipes. It
// knows nothing of what it prints.
package output

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// IsTerminal says whether a person is likely to read what is written to w, or to
// type what is read from it.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is small
}

// Style colours words. The zero Style leaves them as they are.
type Style struct{ coloured bool }

// StyleFor is the style of a stream: coloured on a terminal that can show it, unless
// NO_COLOR asks for none.
func StyleFor(w io.Writer, getenv func(string) string) Style {
	return Style{IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Good is for what is as it should be.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn is for what deserves a look.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Bad is for what is wrong.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Bold is for names and headings.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Faint is for what matters less.
func (s Style) Faint(text string) string { return s.paint("2", text) }

func (s Style) paint(code, text string) string {
	if !s.coloured || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean makes text from elsewhere harmless for a terminal: control characters
// are written out. Lines stay lines.
func Clean(text string) string { return clean(text, "\n\t") }

func clean(text, keep string) string {
	bad := func(r rune) bool {
		return r == utf8.RuneError || (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) &&
			!strings.ContainsRune(keep, r)
	}
	if !strings.ContainsFunc(text, bad) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if bad(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
