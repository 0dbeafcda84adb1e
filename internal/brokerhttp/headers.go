package brokerhttp

import "strings"

// HeaderName reports whether a property's key can be part of a header's name,
// and whether nothing of it is lost there.
func HeaderName(key string) (ok, exact bool) {
	exact = true
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

// HeaderValue reports whether a value can be sent in a header, and whether
// every client reads it the same: bytes past ASCII are taken for Latin-1 by
// some, and blanks at the ends are dropped.
func HeaderValue(s string) (ok, exact bool) {
	exact = s == "" || s[0] != ' ' && s[len(s)-1] != ' '
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			return false, false
		case c > '~':
			exact = false
		}
	}
	return true, exact
}
