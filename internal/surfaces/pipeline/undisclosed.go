package pipeline

import (
	"context"
	"errors"

	"freshet/internal/identity"
)

// Undisclosed is an error about a cluster, for example that it does not exist. Only
// callers of the cluster's organization may see it. Other callers get the same error as
// for any cluster that they have no credentials for.
type Undisclosed struct {
	Organization string
	Err          error
}

// Error implements error.
func (u *Undisclosed) Error() string { return u.Err.Error() }

// Unwrap returns the error as callers of the organization see it.
func (u *Undisclosed) Unwrap() error { return u.Err }

// Disclose returns the error that a caller with this token may see. For an Undisclosed
// error and a caller of another organization, that is an authentication error.
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
