package pipeline

import (
	"context"
	"errors"

	"freshet/internal/identity"
)

// Undisclosed is why a cluster cannot be had, that it does not exist for one. Only
// callers of its organization may hear of it: to others it is like any cluster that
// they have no credentials for.
type Undisclosed struct {
	Organization string
	Err          error
}

// Error implements error.
func (u *Undisclosed) Error() string { return u.Err.Error() }

// Unwrap returns the error as callers of the organization see it.
func (u *Undisclosed) Unwrap() error { return u.Err }

// Disclose returns what to tell a caller with this token about an error: of an
// Undisclosed one, that its credentials are not good, unless it belongs to the
// organization.
func Disclose(ctx context.Context, by Authenticator, token string, err error) error {
	var hidden *Undisclosed
	if !errors.As(err, &hidden) {
		return err
	}
	if token == "" {
		return identity.ErrNoToken
	}
	if _, refused := by.Authenticate(ctx, token, identity.AnyInstance(hidden.Organization)); refused != nil {
		return refused
	}
	return err
}
