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

// Resolver finds what a request is for, by its host: T is a cluster, as far as
// the surface needs to know it. An error of kind NotFound says that there is
// none.
type Resolver[T any] interface {
	Resolve(r *http.Request) (T, error)
}

// ResolverFunc is a function as a Resolver.
type ResolverFunc[T any] func(r *http.Request) (T, error)

// Resolve implements Resolver.
func (f ResolverFunc[T]) Resolve(r *http.Request) (T, error) { return f(r) }

// Authenticator tells whose a token is that is good for one of the audiences;
// its refusals are of kind Unauthenticated. identity.Verifier is one.
type Authenticator interface {
	Authenticate(ctx context.Context, token string, audiences ...string) (*identity.Principal, error)
}

// Authorizer says what gives a principal a permission on a scope; its refusals
// are of kind Denied. access.Policy is one.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission,
		scope access.Scope) (access.Decision, error)
}

// Auditor takes the record of every change and of every call that was denied.
// audit.Log is one.
type Auditor interface {
	Record(r audit.Record)
}

// Options are what every surface asks that serves callers with tokens.
// Authenticator and Authorizer are required.
type Options struct {
	Authenticator Authenticator
	Authorizer    Authorizer
	Auditor       Auditor      // nil: nothing is recorded
	Limiter       *web.Limiter // nil: nothing is bounded
}

// Complete checks what is required and puts something harmless where nothing
// was given. It panics when a required role is missing.
func (o *Options) Complete(surface string) {
	if o.Authenticator == nil || o.Authorizer == nil {
		panic(surface + ": an Authenticator and an Authorizer are required")
	}
	o.Auditor = Audit(o.Auditor)
}

// Audit returns the auditor, or one that discards when there is none.
func Audit(a Auditor) Auditor {
	if a == nil {
		return discard{}
	}
	return a
}

type discard struct{}

func (discard) Record(audit.Record) {}

// Authenticate asks whose the token of a request is, and names the caller in
// the request's record. No token is identity.ErrNoToken.
func (o *Options) Authenticate(r *http.Request, token string, audiences ...string) (*identity.Principal, error) {
	if token == "" {
		return nil, identity.ErrNoToken
	}
	who, err := o.Authenticator.Authenticate(r.Context(), token, audiences...)
	if err != nil {
		return nil, err
	}
	web.RecordOf(r.Context()).Principal = who.Name
	return who, nil
}

// Allowed asks whether a principal has a permission. A denial is an answer, and
// only what kept the question from being answered is an error.
func (o *Options) Allowed(ctx context.Context, who *identity.Principal, permission access.Permission,
	scope access.Scope,
) (bool, error) {
	_, err := o.Authorizer.Authorize(ctx, who, permission, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		return false, nil
	}
	return err == nil, err
}
