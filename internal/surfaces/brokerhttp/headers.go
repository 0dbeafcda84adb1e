package brokerhttp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// headerName reports whether a property's key can be part of a header's name,
// and whether nothing of it is lost there.
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

// headerValue reports whether a value can be sent in a header, and whether
// every client reads it the same: bytes past ASCII are taken for Latin-1 by
// some, and blanks at the ends are dropped.
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

// Printable reports whether a key can be shown as text: UTF-8 without control
// characters.
func Printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}
