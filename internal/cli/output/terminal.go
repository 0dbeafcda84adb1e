// Package output prints the results of commands: tables, JSON, YAML, names and differences.
// On terminals it adds colours and progress lines, in pipes and files it does not. It
// depends on no command and on no resource kind.
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

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is small
}

// Style colours text. The zero Style uses no colours.
type Style struct{ coloured bool }

// StyleFor returns the style for a stream. It has colours if the stream is a terminal that
// supports them and NO_COLOR is not set.
func StyleFor(w io.Writer, getenv func(string) string) Style {
	return Style{IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Good is for success.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn is for warnings.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Bad is for failures.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Bold is for names and headings.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Faint is for secondary information.
func (s Style) Faint(text string) string { return s.paint("2", text) }

func (s Style) paint(code, text string) string {
	if !s.coloured || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean escapes the control characters in text from a server, so that it cannot control the
// terminal. It keeps line breaks and tabs.
func Clean(text string) string { return clean(text, "\n\t") }

func clean(text, allowed string) string {
	bad := func(r rune) bool {
		return r == utf8.RuneError || (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) &&
			!strings.ContainsRune(allowed, r)
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
