package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/web"
)

func TestRouterLeavesPathsAlone(t *testing.T) {
	t.Parallel()
	answer := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Surface", name)
			w.Header().Set("Path", r.URL.EscapedPath())
		})
	}
	r := &router{
		mounts:   []mount{{"/apis", "resources", answer("resources")}, {"/stream", "stream", answer("stream")}},
		fallback: mount{"", "registry", answer("registry")},
	}
	tests := map[string]struct{ path, surface string }{
		"the mount itself":        {"/apis", "resources"},
		"beneath it":              {"/apis/x", "resources"},
		"another word":            {"/apisx", "registry"},
		"the root":                {"/", "registry"},
		"an empty segment":        {"/subjects//versions", "registry"},
		"dots":                    {"/subjects/../versions", "registry"},
		"an escaped slash":        {"/subjects/persistent%3A%2F%2Fa%2Fb%2Fc/versions", "registry"},
		"beneath with an empty":   {"/stream//subjects", "stream"},
		"two slashes at the root": {"//subjects", "registry"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, record := httptest.NewRecorder(), &web.Record{}
			r.ServeHTTP(rec, httptest.NewRequestWithContext(web.WithRecord(t.Context(), record), http.MethodPost, "http://h"+tc.path, http.NoBody))
			if record.Surface != tc.surface || record.Route != "other" {
				t.Errorf("%s is recorded as %q %q", tc.path, record.Surface, record.Route)
			}
			if got := rec.Header().Get("Surface"); rec.Code != http.StatusOK || got != tc.surface {
				t.Errorf("%s: %d from %q, want %q", tc.path, rec.Code, got, tc.surface)
			}
			if got := rec.Header().Get("Path"); got != tc.path {
				t.Errorf("the surface saw %q, want %q", got, tc.path)
			}
		})
	}
}
