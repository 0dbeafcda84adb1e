package pipeline

import (
	"errors"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Challenge is the header WWW-Authenticate of a refusal (RFC 6750): what to
// bring, and what was wrong with what was brought.
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
