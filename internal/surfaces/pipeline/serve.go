package pipeline

import (
	"net/http"

	"freshet/internal/base/web"
	"freshet/internal/identity"
)

// Steps are the steps of a call that differ between surfaces. A surface's type of a call
// embeds Call, which implements Resolve, Authenticate, Forward and Audit for surfaces
// without a cluster.
type Steps interface {
	// Route finds the operation of the request. It sets Call.Public and Call.Unlimited.
	Route() error
	// Resolve finds the cluster. It sets Call.Audiences and Call.Quota.
	Resolve() error
	// Authenticate sets Call.Principal.
	Authenticate() error
	// Forward sends the call to another member and reports whether that member responded.
	Forward() (forwarded bool, err error)
	// Authorize checks the permission that the operation needs.
	Authorize() error
	// Handle serves the request. After it has started a response it must set Call.Started or
	// return no error.
	Handle() error
	// Audit records the call, if it needs a record. err is nil for a successful call.
	Audit(err error, status int)

	base() *Call
}

// OwnerAuthenticator is implemented by calls with credentials that only the owner of a
// resource can check. Their Authenticate returns nil and sets no principal, so that the call
// can be forwarded. If this member is the owner, AuthenticateAtOwner sets the principal.
type OwnerAuthenticator interface {
	AuthenticateAtOwner() error
}

// Serve runs the steps of a call in the order of the package comment.
func Serve(s Steps) {
	c := s.base()
	defer c.release()
	forwarded, err := run(s, c)
	if forwarded {
		return // the other member has audited the call
	}
	status := http.StatusOK
	if err != nil {
		status = c.Surface.Errors.Status(err)
	}
	s.Audit(err, status)
	if err == nil {
		return
	}
	web.RecordOf(c.R.Context()).Fail(err)
	if !c.Started {
		c.Surface.Errors.Write(c, err, status)
	}
}

// run runs the steps until the call is handled.
func run(s Steps, c *Call) (forwarded bool, err error) {
	if refusal := web.Refused(c.R); refusal != nil {
		return false, refusal
	}
	if err := s.Route(); err != nil {
		return false, err
	}
	if c.Public {
		return false, s.Handle()
	}
	if forwarded, err := admit(s, c); forwarded || err != nil {
		return forwarded, err
	}
	if !c.Unlimited {
		caller := c.Caller()
		if err := c.Surface.Limiter.Enter(caller); err != nil {
			return false, err
		}
		defer c.Surface.Limiter.Leave(caller)
	}
	return false, s.Handle()
}

// admit runs the steps that decide whether this member handles the call of a caller.
func admit(s Steps, c *Call) (forwarded bool, err error) {
	if err := s.Resolve(); err != nil {
		return false, err
	}
	if err := s.Authenticate(); err != nil {
		return false, err
	}
	if forwarded, err := s.Forward(); forwarded || err != nil {
		return forwarded, err
	}
	if c.Principal == nil {
		if err := authenticateAtOwner(s); err != nil {
			return false, err
		}
	}
	if err := c.meter(); err != nil {
		return false, err
	}
	return false, s.Authorize()
}

func authenticateAtOwner(s Steps) error {
	owner, ok := s.(OwnerAuthenticator)
	if !ok {
		return identity.ErrNoToken
	}
	if err := owner.AuthenticateAtOwner(); err != nil {
		return err
	}
	if s.base().Principal == nil {
		return identity.ErrNoToken
	}
	return nil
}
