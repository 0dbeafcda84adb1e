package apiserver_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/base/web"
	"freshet/internal/controlplane/apiserver"
)

func TestRejectWhenFull(t *testing.T) {
	t.Parallel()
	const users = "/apis/cloud.vendor.io/v1alpha1/namespaces/a/users"
	for name, tc := range map[string]struct {
		method, path string
		rejected     bool
	}{
		"read":   {http.MethodGet, users, false},
		"delete": {http.MethodDelete, users + "/b", false},
		"create": {http.MethodPost, users, true},
		"update": {http.MethodPut, users + "/b", true},
		"patch":  {http.MethodPatch, users + "/b", true},
		"review": {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
		"token":  {http.MethodPost, users + "/b/token", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, full := range []bool{false, true} {
				handler := web.Middleware(apiserver.RejectWhenFull(
					http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
					func() bool { return !full }), slog.New(slog.DiscardHandler), nil)
				want := http.StatusOK
				if full && tc.rejected {
					want = http.StatusServiceUnavailable
				}
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, http.NoBody))
				if w.Code != want {
					t.Errorf("disk full %v: got %d, want %d", full, w.Code, want)
				}
			}
		})
	}
}
