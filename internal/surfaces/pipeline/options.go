package pipeline

import (
	"context"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
)

// Resolver finds the cluster of a request by its host. T is the surface's own type of a
// cluster. An error of kind NotFound means that the cluster does not exist.
type Resolver[T any] interface {
	Resolve(r *http.Request) (T, error)
}

// Authenticator returns the principal of a token that is valid for one of the
// audiences. It rejects a token with an error of kind Unauthenticated.
// identity.Verifier implements it.
type Authenticator interface {
	Authenticate(ctx context.Context, token string, audiences ...string) (*identity.Principal, error)
}

// Authorizer returns the decision that gives a principal a permission on a scope. It
// rejects with an error of kind Denied. access.Policy implements it.
type Authorizer = access.Authorizer

// Auditor stores the records of all changes and of all denied calls. audit.Log
// implements it.
type Auditor interface {
	Record(r audit.Record)
}

// Options are the dependencies of every surface whose callers have tokens.
// Authenticator and Authorizer are required.
type Options struct {
	Authenticator Authenticator
	Authorizer    Authorizer
	Auditor       Auditor      // nil: no audit records
	Limiter       *web.Limiter // nil: no limits
}

// Complete sets defaults. It panics if a required dependency is missing.
func (o *Options) Complete(surface string) {
	if o.Authenticator == nil || o.Authorizer == nil {
		panic(surface + ": an Authenticator and an Authorizer are required")
	}
	o.Auditor = AuditorOrDiscard(o.Auditor)
}

// AuditorOrDiscard returns a, or an auditor that discards records if a is nil.
func AuditorOrDiscard(a Auditor) Auditor {
	if a == nil {
		return discardAuditor{}
	}
	return a
}

type discardAuditor struct{}

func (discardAuditor) Record(audit.Record) {}

// Authenticate returns the principal of a request's token and adds its name to the
// request's log record. It returns identity.ErrNoToken for an empty token.
func (o *Options) Authenticate(r *http.Request, token string, audiences ...string) (*identity.Principal, error) {
	if token == "" {
		return nil, identity.ErrNoToken
	}
	principal, err := o.Authenticator.Authenticate(r.Context(), token, audiences...)
	if err != nil {
		return nil, err
	}
	web.RecordOf(r.Context()).Principal = principal.Name
	return principal, nil
}

// Allowed reports whether a principal has a permission. A denial is false, not an
// error; the error is a failure to decide.
func (o *Options) Allowed(ctx context.Context, principal *identity.Principal, permission access.Permission,
	scope access.Scope,
) (bool, error) {
	_, err := o.Authorizer.Authorize(ctx, principal, permission, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		return false, nil
	}
	return err == nil, err
}
