package pipeline_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	authorization := pipeline.Authorization{
		Permission: "messaging.topics.create",
		Scope:      access.Scope{Organization: "acme", Tenant: "public"},
		Decision:   access.Decision{Allowed: true, By: access.ByBinding, Role: "r", Binding: "b"},
	}
	principal := &identity.Principal{Name: "ci@acme", KeyID: "k"}
	tests := map[string]struct {
		who    *identity.Principal
		asked  pipeline.Authorization
		status int
		want   audit.Record
	}{
		"allowed": {principal, authorization, 204, audit.Record{
			Principal: "ci@acme", KeyID: "k", Organization: "acme", Scope: "organization/acme/tenant/public",
			Verb: "create", Resource: "topics",
			Permission: "messaging.topics.create", Decision: audit.Allowed, By: string(access.ByBinding), Role: "r",
			Binding: "b", Status: 204,
		}},
		"a failure is not a denial": {
			principal,
			pipeline.Authorization{Permission: "messaging.topics.create"},
			409,
			audit.Record{
				Principal: "ci@acme", KeyID: "k", Verb: "create", Resource: "topics",
				Permission: "messaging.topics.create", Decision: audit.Allowed, Status: 409,
			},
		},
		"denied: no decision": {principal, authorization, 403, audit.Record{
			Principal: "ci@acme", KeyID: "k", Organization: "acme", Scope: "organization/acme/tenant/public",
			Verb: "create", Resource: "topics",
			Permission: "messaging.topics.create", Decision: audit.Denied, Status: 403,
		}},
		"no principal and no permission": {
			nil,
			pipeline.Authorization{},
			401,
			audit.Record{Verb: "put", Decision: audit.Denied, Status: 401},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPut, "/", http.NoBody)
			r.Header.Set("User-Agent", "curl")
			got := pipeline.Record(r, "messages", tc.who, tc.asked, tc.status)
			if got.Time.IsZero() {
				t.Error("audit record has no time")
			}
			tc.want.Time, tc.want.Surface, tc.want.Source, tc.want.UserAgent = got.Time, "messages",
				r.RemoteAddr, "curl"
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// tokenAuthenticator is an authenticator that returns the token as the principal's name.
type tokenAuthenticator struct{}

func (tokenAuthenticator) Authenticate(_ context.Context, token string,
	audiences ...string,
) (*identity.Principal, error) {
	return &identity.Principal{Name: token + " for " + audiences[0]}, nil
}

// fixedAuthorizer is an authorizer that always returns the same error.
type fixedAuthorizer struct{ err error }

func (a fixedAuthorizer) Authorize(context.Context, *identity.Principal, access.Permission,
	access.Scope,
) (access.Decision, error) {
	return access.Decision{Allowed: a.err == nil}, a.err
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tc := range []struct {
		says, err error
		want      bool
	}{{nil, nil, true}, {errs.New(errs.Denied, "no"), nil, false}, {broken, broken, false}} {
		o := pipeline.Options{Authorizer: fixedAuthorizer{tc.says}}
		got, err := o.Allowed(t.Context(), nil, "", access.Scope{})
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("authorizer returns %v: got %v, %v, want %v, %v", tc.says, got, err, tc.want, tc.err)
		}
	}
}

func TestCompleteRequiresAnAuthenticator(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Complete accepted options without an authenticator, want a panic")
		}
	}()
	o := pipeline.Options{Authorizer: fixedAuthorizer{}}
	o.Complete("messageapi")
}

func TestEmptyTokenIsNotAuthenticated(t *testing.T) {
	t.Parallel()
	o := pipeline.Options{Authenticator: tokenAuthenticator{}}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	if _, err := o.Authenticate(r, "", "a"); !errors.Is(err, identity.ErrNoToken) {
		t.Errorf("without a token: got %v, want %v", err, identity.ErrNoToken)
	}
	if principal, err := o.Authenticate(r, "t", "a"); err != nil || principal.Name != "t for a" {
		t.Errorf("with a token: got %v, %v, want t for a", principal, err)
	}
	o = pipeline.Options{Authenticator: o.Authenticator, Authorizer: fixedAuthorizer{}}
	o.Complete("messageapi")
	o.Auditor.Record(audit.Record{}) // the default auditor discards it
}
