package brokerhttp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// headerName reports whether a property's key can be part of a header's name, and
// whether it survives unchanged. Upper case does not: header names are not
// case-sensitive.
func headerName(key string) (ok, exact bool) {
	exact = true
	if key == "" {
		return false, false
	}
	for i := range len(key) {
		c := key[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z':
			exact = false
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false, false
		}
	}
	return true, exact
}

// headerValue reports whether a value can be sent in a header, and whether every client
// decodes it unchanged: some clients decode bytes above ASCII as Latin-1, and spaces at
// the start and end are dropped.
func headerValue(s string) (ok, exact bool) {
	exact = s == "" || s[0] != ' ' && s[len(s)-1] != ' '
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			return false, false
		case c > '~':
			exact = false
		}
	}
	if !exact && !utf8.ValidString(s) {
		return false, false
	}
	return true, exact
}

// Printable reports whether s is text: valid UTF-8 without control characters.
func Printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}
