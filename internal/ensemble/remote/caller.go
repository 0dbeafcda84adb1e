package remote

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"freshet/internal/base/fairshare"
)

// callerHeader names the organization and the principal for whom a call is made, so that the owner
// divides its memory fairly among the callers of all members. Members of earlier versions do not send
// it, and ignore it.
const callerHeader = "Freshet-Caller"

// sendCaller adds the caller of a context to a request.
func sendCaller(ctx context.Context, r *http.Request) {
	if c := fairshare.CallerOf(ctx); c != (fairshare.Caller{}) {
		r.Header.Set(callerHeader, url.QueryEscape(c.Organization)+"/"+url.QueryEscape(c.Principal))
	}
}

// withCaller returns the context of a request with the caller that the other member sent.
func withCaller(r *http.Request) context.Context {
	organization, principal, ok := strings.Cut(r.Header.Get(callerHeader), "/")
	if !ok {
		return r.Context()
	}
	var c fairshare.Caller
	var err error
	if c.Organization, err = url.QueryUnescape(organization); err != nil {
		return r.Context()
	}
	if c.Principal, err = url.QueryUnescape(principal); err != nil {
		return r.Context()
	}
	return fairshare.WithCaller(r.Context(), c)
}
