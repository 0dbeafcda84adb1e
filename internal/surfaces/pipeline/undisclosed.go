package pipeline

import (
	"context"
	"errors"

	"freshet/internal/identity"
)

// UndisclosedError is an error about a cluster, for example that it does not exist. Only
// callers of the cluster's organization may see it. Other callers get the same error as
// for any cluster that they have no credentials for.
type UndisclosedError struct {
	Organization string
	Err          error
}

// Error implements error.
func (u *UndisclosedError) Error() string { return u.Err.Error() }

// Unwrap returns the error as callers of the organization see it.
func (u *UndisclosedError) Unwrap() error { return u.Err }

// Disclose returns the error that a caller with this token may see. For an Undisclosed
// error and a caller of another organization, that is an authentication error.
func Disclose(ctx context.Context, authenticator Authenticator, token string, err error) error {
	var undisclosed *UndisclosedError
	if !errors.As(err, &undisclosed) {
		return err
	}
	if token == "" {
		return identity.ErrNoToken
	}
	if _, authErr := authenticator.Authenticate(ctx, token,
		identity.AnyInstance(undisclosed.Organization)); authErr != nil {
		return authErr
	}
	return err
}
