package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/base/web"
)

func TestFrontPageIsForBrowsersOnly(t *testing.T) {
	t.Parallel()
	page := frontPage(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tc := range []struct {
		method, path, accept string
		want                 int
	}{
		{"GET", "/", browser, 302},
		{"HEAD", "/", browser, 302},
		{"GET", "/", "", 418},
		{"GET", "/", "*/*", 418},
		{"GET", "/", "application/vnd.schemaregistry.v1+json", 418},
		{"POST", "/", browser, 418},
		{"GET", "/subjects", browser, 418},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "http://h"+tc.path, http.NoBody)
		r.Header.Set("Accept", tc.accept)
		page.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s %s, Accept %q: got %d, want %d", tc.method, tc.path, tc.accept, w.Code, tc.want)
		}
		if got := w.Header().Get("Location"); tc.want == http.StatusFound && got != "/console/" {
			t.Errorf("%s %s: got Location %q, want /console/", tc.method, tc.path, got)
		}
	}
}

// TestConsoleIsServedDuringStart checks that the console is served while the server starts.
// The console itself shows that the server is starting and retries, while a browser would stay
// on an error page.
func TestConsoleIsServedDuringStart(t *testing.T) {
	t.Parallel()
	router := newRouter(mounts(refusingHandlers(web.ErrStarting, http.NotFoundHandler()), web.CORS{}), web.CORS{})
	for _, path := range []string{"/console/", "/console/acme/clusters/prod", "/console/a%2Fb"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+path, http.NoBody))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `<div id="app">`) {
			t.Errorf("GET %s: got %d %.80q, want the page", path, w.Code, w.Body)
		}
	}
}

// TestDocumentationIsServedDuringStart checks that the documentation needs no credentials and no running parts.
func TestDocumentationIsServedDuringStart(t *testing.T) {
	t.Parallel()
	router := newRouter(mounts(refusingHandlers(web.ErrStarting, http.NotFoundHandler()), web.CORS{}), web.CORS{})
	for path, want := range map[string]string{
		"/docs/":                    "<title>Freshet documentation</title>",
		"/docs/howto/messages.html": "<h1 id=",
		"/docs/howto/messages.md":   "# ",
	} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+path, http.NoBody))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s: got %d %.80q, want %q", path, w.Code, w.Body, want)
		}
	}
}
