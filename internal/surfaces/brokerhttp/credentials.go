package brokerhttp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
)

var errScheme = errs.New(errs.Unauthenticated, "scheme of the Authorization header is not supported; send "+
	"Bearer with a token, or Basic with the token as password")

// credentials returns the token of the Authorization header: a bearer token, or the
// password of basic credentials, whose user name is ignored. The schema registry
// accepts the same forms.
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
		return "", errs.Newf(errs.Unauthenticated, "basic credentials of the request are not valid base64")
	}
	_, password, _ := strings.Cut(string(decoded), ":")
	return strings.TrimPrefix(password, "token:"), nil
}
