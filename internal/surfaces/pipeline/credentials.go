package pipeline

import (
	"encoding/base64"
	"net/http"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
)

// Errors for an Authorization header that has no token.
var (
	ErrScheme = errs.New(errs.Unauthenticated, "scheme of the Authorization header is not supported; send "+
		"Bearer with a token, or Basic with the token as password")
	ErrBasicEncoding = errs.New(errs.Unauthenticated, "basic credentials of the request are not valid base64")
)

// Token returns the token of the Authorization header: a bearer token, or the password of
// basic credentials, whose user name is ignored. It returns identity.ErrNoToken if there is
// none.
func Token(r *http.Request) (string, error) {
	scheme, token, ok := web.Authorization(r)
	switch {
	case !ok:
		return "", identity.ErrNoToken
	case strings.EqualFold(scheme, "Bearer"):
	case strings.EqualFold(scheme, "Basic"):
		decoded, err := base64.StdEncoding.DecodeString(token)
		if err != nil {
			return "", ErrBasicEncoding
		}
		_, password, _ := strings.Cut(string(decoded), ":")
		token = strings.TrimPrefix(password, "token:")
	default:
		return "", ErrScheme
	}
	if token == "" {
		return "", identity.ErrNoToken
	}
	return token, nil
}

// token returns the token of the call in a form that the surface accepts.
func (c *Call) token() (string, error) {
	if !c.Surface.BearerOnly {
		return Token(c.R)
	}
	token, ok := web.BearerToken(c.R)
	if !ok {
		return "", identity.ErrNoToken
	}
	return token, nil
}
