package systemapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/pipeline/pipelinetest"
	"freshet/internal/surfaces/systemapi"
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
	root := token("root", func(a *identity.Account) { a.System = true })
	nobody := token("nobody", func(*identity.Account) {})
	api := systemapi.New(systemapi.Options{
		Audiences: []string{identitytest.IssuerURL}, Ensemble: &fixture{},
		Configuration: configuration(""),
		Options: trace.Options(pipeline.Options{
			Authenticator: world.Verifier, Authorizer: access.NewPolicy(), Limiter: pipelinetest.FullLimiter(),
		}),
	})
	const loss = "shards/acme/prod/3/loss"
	for _, tc := range []struct {
		name, token, method, path string
		status                    int
		steps                     string
	}{
		{"read", root, "GET", "configuration", 200, "authenticate"},
		{"metrics, denied", nobody, "GET", "metrics", 403, "authenticate authorize audit"},
		{"configuration, denied", nobody, "GET", "configuration", 403, "authenticate audit"},
		{"change, denied", nobody, "POST", "members/b/replace", 403, "authenticate audit"},
		{"change, denied before the body is read", nobody, "POST", loss, 403, "authenticate audit"},
		{"change, invalid", root, "POST", loss, 400, "authenticate"},
		{"unauthenticated", "?", "POST", "members/b/replace", 401, "authenticate audit"},
		{"no token", "", "GET", "metrics", 401, "audit"},
		{"public", "", "GET", "openapi.yaml", 200, ""},
		{"no route", root, "GET", "other", 404, ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(tc.method, "/system/v1alpha1/"+tc.path, http.NoBody)
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		api.ServeHTTP(w, r)
		if steps := trace.Take(); w.Code != tc.status || steps != tc.steps {
			t.Errorf("%s: got status %d after %q, want %d after %q", tc.name, w.Code, steps, tc.status, tc.steps)
		}
	}
}
