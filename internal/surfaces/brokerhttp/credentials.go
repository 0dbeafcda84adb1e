package brokerhttp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
)

var errScheme = errs.New(errs.Unauthenticated, "the scheme of the Authorization header is not understood; send "+
	"Bearer with a token, or Basic with the token as password")

// credentials takes the token out of the Authorization header: a bearer token,
// or the password of basic credentials, whose user name is a placeholder, as the
// schema registry takes them.
func credentials(r *http.Request) (string, error) {
	scheme, value, ok := web.Authorization(r)
	switch {
	case !ok:
		return "", identity.ErrNoToken
	case strings.EqualFold(scheme, "Bearer"):
		return value, nil
	case !strings.EqualFold(scheme, "Basic"):
		return "", errScheme
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return "", errs.Newf(errs.Unauthenticated, "the Basic credentials of the request are not base64")
	}
	_, password, _ := strings.Cut(string(decoded), ":")
	return strings.TrimPrefix(password, "token:"), nil
}
