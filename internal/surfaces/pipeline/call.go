package pipeline

import (
	"context"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/base/workpool"
	"freshet/internal/identity"
	"freshet/internal/ops/quota"
)

// Surface is what all requests of a surface share.
type Surface struct {
	Name string // in records and metrics
	Options
	Errors ErrorTable
	// BearerOnly rejects tokens that are sent as the password of the Basic scheme.
	BearerOnly bool
}

// ErrorTable maps errors to responses in the surface's own form. Each surface has one.
type ErrorTable interface {
	// Status returns the status of the response to an error.
	Status(err error) int
	// Write responds with an error. The request's log record has it already.
	Write(c *Call, err error, status int)
}

// Call is the state of one request. Surfaces embed it in their own types of calls.
type Call struct {
	W       http.ResponseWriter
	R       *http.Request
	Surface *Surface

	Public    bool // the operation needs no caller
	Unlimited bool // the call takes no slot of the limiter

	Audiences []string       // names under which the cluster accepts tokens
	Quota     *quota.Cluster // limits the cluster; nil: no limit

	Principal     *identity.Principal // the caller; nil before it is authenticated
	Authorization Authorization       // the last permission check, for the audit record
	Changed       bool                // the call has changed something, so it gets an audit record

	Allow   string // the allowed methods, if the request's method is not allowed
	Started bool   // the response has been started

	reserved int64 // bytes that the body has reserved at the limiter
}

// base implements Steps.
func (c *Call) base() *Call { return c } //nolint:unused // by the types of calls that embed Call

// Resolve implements Steps for surfaces that belong to no cluster.
func (c *Call) Resolve() error { return nil }

// Resolve finds the cluster of a call. A caller that does not belong to the cluster's
// organization cannot find out whether the cluster exists.
func Resolve[T any](c *Call, resolver Resolver[T], into *T) (err error) {
	if *into, err = resolver.Resolve(c.R); err == nil {
		return nil
	}
	token, tokenErr := c.token()
	if tokenErr != nil {
		return tokenErr
	}
	return Disclose(c.R.Context(), c.Surface.Authenticator, token, err)
}

// Authenticate implements Steps. It identifies the caller by the token of the request.
func (c *Call) Authenticate() error {
	token, err := c.token()
	if err == nil {
		c.Principal, err = c.Surface.Authenticate(c.R, token, c.Audiences...)
	}
	return err
}

// Forward implements Steps for surfaces whose calls every member can handle.
func (c *Call) Forward() (forwarded bool, err error) { return false, nil }

// meter counts the call against the quotas of the cluster and its organization, and rejects
// it if they are exceeded. System administrators are exempt.
func (c *Call) meter() error {
	if c.Quota == nil || c.Principal.System {
		return nil
	}
	web.RecordOf(c.R.Context()).Meter = c.Quota
	return c.Quota.Admit()
}

// Audit implements Steps. It records a call that has changed something or was denied. An
// exceeded quota is not a denial, although it has the status of one.
func (c *Call) Audit(err error, status int) {
	if c.Changed || Denied(status) && errs.KindOf(err) != errs.Exhausted {
		c.Surface.Auditor.Record(Record(c.R, c.Surface.Name, c.Principal, c.Authorization, status))
	}
}

// Caller returns the caller for the limiter. It is the zero Caller before the caller is
// authenticated.
func (c *Call) Caller() web.Caller {
	if c.Principal == nil {
		return web.Caller{}
	}
	return web.Caller{Organization: c.Principal.Organization, Principal: c.Principal.Name}
}

// WorkContext returns the context for expensive calls. It names the organization and the
// principal, so that the work pool and the memory for unpacked batches can be shared fairly.
func (c *Call) WorkContext() context.Context {
	return workpool.WithCaller(c.R.Context(), c.Caller())
}

// ReadBody reads the whole body of r once there is memory for it. r is the request of the
// call, or a copy with a decoded body. A body of more than limit bytes is an error. Serve
// releases the memory.
func (c *Call) ReadBody(r *http.Request, limit int64) ([]byte, error) {
	body, reserved, err := c.Surface.Limiter.ReadBody(r, c.Caller(), limit)
	c.reserved += reserved
	return body, err
}

func (c *Call) release() {
	c.Surface.Limiter.Release(c.Caller(), c.reserved)
	c.reserved = 0
}
