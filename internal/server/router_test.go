package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"freshet/internal/base/web"
)

func TestRouterDoesNotChangePaths(t *testing.T) {
	t.Parallel()
	answer := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Surface", name)
			w.Header().Set("Path", r.URL.EscapedPath())
		})
	}
	r := newRouter([]web.Route[mount]{
		mountAt("/apis/...", "resources", answer("resources")), mountAt("/stream/...", "stream", answer("stream")),
		mountAt("/...", "registry", answer("registry")),
	}, web.CORS{})
	tests := map[string]struct{ path, surface string }{
		"the mount itself":        {"/apis", "resources"},
		"below it":                {"/apis/x", "resources"},
		"another word":            {"/apisx", "registry"},
		"the root":                {"/", "registry"},
		"an empty segment":        {"/subjects//versions", "registry"},
		"dots":                    {"/subjects/../versions", "registry"},
		"an escaped slash":        {"/subjects/persistent%3A%2F%2Fa%2Fb%2Fc/versions", "registry"},
		"below, an empty segment": {"/stream//subjects", "stream"},
		"two slashes at the root": {"//subjects", "registry"},
		"longer than any route":   {"/apis/1/2/3/4/5/6/7/8/9/a/b/c/d/e", "resources"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, seen := httptest.NewRecorder(), &observed{}
			web.Middleware(r, slog.New(slog.DiscardHandler), seen).
				ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost,
					"http://h"+tc.path, http.NoBody))
			if want := (observed{tc.surface, "other"}); *seen != want {
				t.Errorf("%s is recorded as %+v, want %+v", tc.path, *seen, want)
			}
			if got := rec.Header().Get("Surface"); rec.Code != http.StatusOK || got != tc.surface {
				t.Errorf("%s: %d from %q, want %q", tc.path, rec.Code, got, tc.surface)
			}
			if got := rec.Header().Get("Path"); got != tc.path {
				t.Errorf("surface got path %q, want %q", got, tc.path)
			}
		})
	}
}

// observed records the surface and the route of the last request.
type observed struct{ surface, route string }

func (o *observed) ObserveRequest(surface, route, _ string, _ int, _ time.Duration, _ int64) {
	o.surface, o.route = surface, route
}
