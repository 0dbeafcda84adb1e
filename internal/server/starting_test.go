package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"freshet/internal/base/web"
	"freshet/internal/surfaces/refusal"
)

// TestStartingRejectsInTheSurfaceFormat checks that requests to a starting server get 503 with
// Retry-After in the format of each surface, and never 404.
func TestStartingRejectsInTheSurfaceFormat(t *testing.T) {
	t.Parallel()
	const text = "server is starting; retry in a moment"
	r := web.Middleware(
		newRouter(mounts(refusingHandlers(web.ErrStarting, refusal.Starting(&atomic.Pointer[string]{})), web.CORS{}),
			web.CORS{Origins: []string{"*"}}),
		slog.New(slog.DiscardHandler), nil)
	reason, registry := `{"reason":"`+text+`"}`, `{"error_code":503,"message":"`+text+`"}`
	for _, tc := range []struct{ method, path, want string }{
		{"POST", "/admin/rest/topics/v1/public/default/t/message", reason},
		{"GET", "/admin/v2/tenants", reason},
		{"GET", "/rest-stream/admin/v1/topics", reason},
		{"GET", "/subjects", registry},
		{"GET", "/schemas/ids/1", registry},
		{"GET", "/stream/subjects", registry},
		{"GET", "/", registry},
		{"POST", "/oauth/token", `{"error":"temporarily_unavailable","error_description":"` + text + `"}`},
		{"GET", "/.well-known/jwks.json", `{"error":"temporarily_unavailable","error_description":"` + text + `"}`},
		{"GET", "/apis", `"message":"` + text +
			`","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}`},
		{"GET", "/api", `"reason":"ServiceUnavailable"`},
		{"GET", "/apis/cloud.vendor.io/v1alpha1/namespaces/a/users/b", `"kind":"Status"`},
		{"GET", "/openapi/v3", `"kind":"Status"`},
		{"GET", "/audit/v1alpha1/records", `"reason":"ServiceUnavailable"`},
		{"GET", "/readyz", text},
		{"GET", "/healthz", text},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, "http://h"+tc.path,
			strings.NewReader("a body")))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" ||
			!strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s: got %d, Retry-After %q, %s; want 503, 1, %s",
				tc.method, tc.path, w.Code, w.Header().Get("Retry-After"), w.Body, tc.want)
		}
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", http.NoBody))
	if w.Code != http.StatusOK {
		t.Errorf("/livez: got %d, want 200, because the process is alive", w.Code)
	}
}

// TestCORSIsHandledBeforeEverySurface checks that a preflight request, which has no credentials,
// succeeds even if the surface rejects all requests.
func TestCORSIsHandledBeforeEverySurface(t *testing.T) {
	t.Parallel()
	refused := refusingHandlers(web.ErrStarting, refusal.Starting(&atomic.Pointer[string]{}))
	cors := web.CORS{Origins: []string{"https://app.example"}}
	r := newRouter(mounts(refused, cors), cors)
	for _, m := range mounts(refused, cors) {
		if m.Value.surface == surfacePages {
			continue // sign-in pages do not support CORS
		}
		path := strings.ReplaceAll(m.Pattern, "...", "x")
		for origin, want := range map[string]string{
			"https://app.example":  "https://app.example",
			"https://evil.example": "",
		} {
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "http://h"+path, http.NoBody)
			req.Header.Set("Origin", origin)
			req.Header.Set("Access-Control-Request-Method", "PUT")
			r.ServeHTTP(w, req)
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != want ||
				(want != "") != (w.Code == http.StatusNoContent) {
				t.Errorf("preflight for %s from %s: got %d and %q, want %q", path, origin, w.Code, got, want)
			}
		}
	}
}
