package registryapi_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/base/web"
	"freshet/internal/ops/quota"
	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/pipeline/pipelinetest"
	"freshet/internal/surfaces/registryapi"
)

// TestOrderOfSteps: the surface runs the steps in the order of pipeline.Serve. So a throttled
// caller is not authorized, and a denied one takes no slot of the limiter.
func TestOrderOfSteps(t *testing.T) {
	t.Parallel()
	h := fixture{registry: newRegistry(t, schemas.Options{})}
	full, throttled := pipelinetest.FullLimiter(), pipelinetest.ThrottledCluster()
	const subject, body = "/config/t-value", `{"compatibility":"NONE"}`
	for _, tc := range []struct {
		name, token, method, path, body string
		limiter                         *web.Limiter
		quota                           *quota.Cluster
		status                          int
		steps                           string
	}{
		{"change", "admin", "PUT", subject, body, nil, nil, 200, "resolve authenticate authorize audit"},
		{"read", "admin", "GET", subject, "", nil, nil, 200, "resolve authenticate authorize"},
		{"no slot", "admin", "PUT", subject, body, full, nil, 503, "resolve authenticate authorize"},
		{"denied", "nobody", "PUT", subject, body, full, nil, 403, "resolve authenticate authorize audit"},
		{"mode, denied", "nobody", "PUT", "/mode", body, full, nil, 403, "resolve authenticate authorize audit"},
		{
			"export, denied", "nobody", "GET", "/registry/v1alpha1/export", "", full, nil, 403,
			"resolve authenticate authorize audit",
		},
		{
			"import, denied", "nobody", "POST", "/registry/v1alpha1/import", "", full, nil, 403,
			"resolve authenticate authorize audit",
		},
		{"throttled", "nobody", "PUT", subject, body, full, throttled, 429, "resolve authenticate"},
		{"unauthenticated", "?", "PUT", subject, body, full, throttled, 401, "resolve authenticate audit"},
		{"no credentials", "", "PUT", subject, body, full, throttled, 401, "resolve audit"},
		{"public", "", "GET", "/registry/v1alpha1/openapi.yaml", "", full, throttled, 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			trace := &pipelinetest.Trace{}
			api := registryapi.New(registryapi.Options{
				Options: trace.Options(pipeline.Options{Authenticator: h, Authorizer: h, Limiter: tc.limiter}),
				Resolver: pipelinetest.Resolver(trace, h,
					func(target *registryapi.Target) { target.Quota = tc.quota }),
			})
			w, r := httptest.NewRecorder(), httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
			if tc.token != "" {
				r.Header.Set("Authorization", "Bearer "+tc.token)
			}
			web.Middleware(api, slog.New(slog.DiscardHandler), nil).ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Errorf("got status %d, want %d; body %s", w.Code, tc.status, w.Body)
			}
			if got := trace.Take(); got != tc.steps {
				t.Errorf("got steps %q, want %q", got, tc.steps)
			}
		})
	}
}
