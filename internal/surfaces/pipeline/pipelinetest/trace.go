// Package pipelinetest lets tests of surfaces observe the order of the steps that
// pipeline.Serve runs. Only tests import it. Its only lock is Trace.mu, which protects
// Trace.steps.
package pipelinetest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
)

// Trace records the steps of calls.
type Trace struct {
	mu    sync.Mutex
	steps []string
}

// Add records a step. A step that repeats the last one is not recorded again: an operation
// may authorize several permissions.
func (t *Trace) Add(step string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(t.steps[max(0, len(t.steps)-1):], []string{step}) {
		t.steps = append(t.steps, step)
	}
}

// Take returns the recorded steps, separated by spaces, and forgets them.
func (t *Trace) Take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	steps := strings.Join(t.steps, " ")
	t.steps = nil
	return steps
}

// Options returns options that record the steps authenticate, authorize and audit.
func (t *Trace) Options(inner pipeline.Options) pipeline.Options {
	return pipeline.Options{
		Authenticator: authenticator{t, inner.Authenticator},
		Authorizer:    authorizer{t, inner.Authorizer},
		Auditor:       auditor{t, pipeline.AuditorOrDiscard(inner.Auditor)},
		Limiter:       inner.Limiter,
	}
}

// ResolverFunc adapts a function to a pipeline.Resolver.
type ResolverFunc[T any] func(r *http.Request) (T, error)

// Resolve implements pipeline.Resolver.
func (f ResolverFunc[T]) Resolve(r *http.Request) (T, error) { return f(r) }

// Resolver returns a resolver that records the step resolve. edit changes the cluster; it may
// be nil.
func Resolver[T any](t *Trace, inner pipeline.Resolver[T], edit func(*T)) pipeline.Resolver[T] {
	return ResolverFunc[T](func(r *http.Request) (T, error) {
		t.Add("resolve")
		found, err := inner.Resolve(r)
		if edit != nil {
			edit(&found)
		}
		return found, err
	})
}

type authenticator struct {
	trace *Trace
	inner pipeline.Authenticator
}

func (a authenticator) Authenticate(ctx context.Context, token string,
	audiences ...string,
) (*identity.Principal, error) {
	a.trace.Add("authenticate")
	return a.inner.Authenticate(ctx, token, audiences...)
}

type authorizer struct {
	trace *Trace
	inner pipeline.Authorizer
}

func (a authorizer) Authorize(ctx context.Context, principal *identity.Principal, permission access.Permission,
	scope access.Scope,
) (access.Decision, error) {
	a.trace.Add("authorize")
	return a.inner.Authorize(ctx, principal, permission, scope)
}

type auditor struct {
	trace *Trace
	inner pipeline.Auditor
}

func (a auditor) Record(r audit.Record) {
	a.trace.Add("audit")
	a.inner.Record(r)
}
