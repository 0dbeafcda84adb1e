package web

import (
	"net/http"
	"strings"
)

// BearerToken returns the bearer token of the request; the scheme's case does
// not matter (RFC 9110 §11.1).
func BearerToken(r *http.Request) (string, bool) {
	scheme, token, ok := Authorization(r)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false
	}
	return token, true
}

// Authorization splits the Authorization header into scheme and credentials.
func Authorization(r *http.Request) (scheme, credentials string, ok bool) {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return "", "", false
	}
	scheme, credentials, ok = strings.Cut(strings.TrimSpace(values[0]), " ")
	return scheme, strings.TrimSpace(credentials), ok
}
