package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/config"
)

func TestFrontPageIsForBrowsersOnly(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.BaseURL = "https://stream.example:8443"
	page, err := frontPage(cfg, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if err != nil {
		t.Fatal(err)
	}
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tc := range []struct {
		method, path, accept string
		want                 int
	}{
		{"GET", "/", browser, 200},
		{"HEAD", "/", browser, 200},
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
		if w.Code != http.StatusOK {
			continue
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none';") {
			t.Errorf("the policy is %q, want one that allows nothing", got)
		}
		body := w.Body.String()
		if !strings.Contains(body, "https://stream.example:8443") {
			t.Errorf("the page does not name the address:\n%s", body)
		}
		for _, never := range []string{"<script", "<style", "style=", "<img", "<link", `href="http`, "src="} {
			if strings.Contains(body, never) {
				t.Errorf("the page has %s, which its policy forbids", never)
			}
		}
	}
}
