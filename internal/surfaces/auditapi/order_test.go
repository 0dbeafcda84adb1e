package auditapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/pipeline/pipelinetest"
)

// TestOrderOfSteps: the surface runs the steps in the order of pipeline.Serve. The limiter
// does not count its calls.
func TestOrderOfSteps(t *testing.T) {
	t.Parallel()
	world, trace := identitytest.New(t), &pipelinetest.Trace{}
	token := func(name string, edit func(*identity.Account)) string {
		account, _ := world.Account("acme", name, edit)
		return world.Token(account, identitytest.IssuerURL)
	}
	boss := token("boss", func(a *identity.Account) { a.Admin = true })
	nobody := token("nobody", func(*identity.Account) {})
	api := auditapi.New(auditapi.Options{
		Audiences: []string{identitytest.IssuerURL},
		Options: trace.Options(pipeline.Options{
			Authenticator: world.Verifier, Authorizer: access.NewPolicy(), Limiter: pipelinetest.FullLimiter(),
		}),
	})
	for _, tc := range []struct {
		name, token, path string
		status            int
		steps             string
	}{
		{"allowed", boss, "records", 404, "authenticate authorize"}, // the trail is disabled
		{"denied", nobody, "records", 403, "authenticate authorize audit"},
		{"unauthenticated", "?", "records", 401, "authenticate audit"},
		{"no token", "", "records", 401, "audit"},
		{"public", "", "openapi.yaml", 200, ""},
		{"no route", boss, "other", 404, ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/audit/v1alpha1/"+tc.path, http.NoBody)
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		api.ServeHTTP(w, r)
		if steps := trace.Take(); w.Code != tc.status || steps != tc.steps {
			t.Errorf("%s: got status %d after %q, want %d after %q", tc.name, w.Code, steps, tc.status, tc.steps)
		}
	}
}
