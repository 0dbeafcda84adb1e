package tokenapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/identity/access"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/pipeline/pipelinetest"
	"freshet/internal/surfaces/tokenapi"
)

// TestOrderOfSteps: the surface runs the steps in the order of pipeline.Serve. Only userinfo
// has callers with tokens; the other requests have credentials in their body.
func TestOrderOfSteps(t *testing.T) {
	t.Parallel()
	trace := &pipelinetest.Trace{}
	f := newFixture(t, func(o *tokenapi.Options) {
		traced := trace.Options(pipeline.Options{
			Authenticator: o.Authenticator, Authorizer: access.NewPolicy(), Auditor: o.Auditor,
		})
		o.Authenticator, o.Auditor = traced.Authenticator, traced.Auditor
	})
	token := f.Token(f.account, base)
	for _, tc := range []struct {
		name, token, method, path string
		status                    int
		steps                     string
	}{
		{"userinfo", token, "GET", "/oauth/userinfo", 200, "authenticate"},
		{"userinfo, unauthenticated", "?", "GET", "/oauth/userinfo", 401, "authenticate"},
		{"userinfo, no token", "", "GET", "/oauth/userinfo", 401, ""},
		{"token, no credentials", token, "POST", "/oauth/token", 401, ""},
		{"public", "", "GET", "/oauth/openapi.yaml", 200, ""},
		{"no route", token, "GET", "/oauth/other", 404, ""},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(`{"grant_type":"client_credentials"}`))
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		f.handler.ServeHTTP(w, r)
		if steps := trace.Take(); w.Code != tc.status || steps != tc.steps {
			t.Errorf("%s: got status %d after %q, want %d after %q", tc.name, w.Code, steps, tc.status, tc.steps)
		}
	}
}
