package pipeline

import (
	"errors"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Challenge returns the WWW-Authenticate header for an authentication or authorization
// error (RFC 6750).
func Challenge(realm string, err error) string {
	header := "Bearer realm=" + strconv.QuoteToASCII(realm)
	switch {
	case errors.Is(err, identity.ErrNoToken):
		return header
	case errs.KindOf(err) == errs.Unauthenticated:
		return header + `, error="invalid_token", error_description=` + strconv.QuoteToASCII(err.Error())
	}
	return header + `, error="insufficient_scope"`
}
