package docsite

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://h"+target, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestServing(t *testing.T) {
	t.Parallel()
	const page, text, revalidate = "text/html; charset=utf-8", "text/plain; charset=utf-8", "no-cache"
	for _, tc := range []struct {
		method, path string
		status       int
		kind, cache  string
		location     string
	}{
		{"GET", "/docs", 308, "", "", "/docs/"},
		{"GET", "/docs/", 200, page, revalidate, ""},
		{"HEAD", "/docs/", 200, page, revalidate, ""},
		{"GET", "/docs/index.html", 200, page, revalidate, ""},
		{"GET", "/docs/howto/messages.html", 200, page, revalidate, ""},
		{"GET", "/docs/howto/messages.md", 200, text, revalidate, ""},
		{"GET", "/docs/howto/messages", 308, "", "", "/docs/howto/messages.html"},
		{"GET", "/docs/spec", 308, "", "", "/docs/spec/"},
		{"GET", "/docs/spec/", 200, page, revalidate, ""},
		{"GET", "/docs/project/security.html", 200, page, revalidate, ""},
		{"GET", "/docs/openapi/messages.yaml", 200, text, revalidate, ""},
		{"GET", "/docs/llms.txt", 200, text, revalidate, ""},
		{"GET", "/docs/-/docs.css", 200, "text/css; charset=utf-8", revalidate, ""},
		{"GET", "/docs/-/docs.js", 200, "text/javascript; charset=utf-8", revalidate, ""},
		{"GET", "/docs/-/search.json", 200, "application/json", revalidate, ""},
		{"GET", "/docs/howto/", 404, text, "no-store", ""},
		{"GET", "/docs/../go.mod", 404, text, "no-store", ""},
		{"GET", "/docs/%2e%2e/%2e%2e/etc/passwd", 404, text, "no-store", ""},
		{"GET", "/docs//index.html", 404, text, "no-store", ""},
		{"GET", "/docs/" + strings.Repeat("a/", 2000), 404, text, "no-store", ""},
		{"POST", "/docs/", 405, text, "", ""},
	} {
		res := get(t, tc.method, tc.path)
		if res.StatusCode != tc.status || res.Header.Get("Content-Type") != tc.kind ||
			res.Header.Get("Cache-Control") != tc.cache || res.Header.Get("Location") != tc.location {
			t.Errorf("%s %.60s: got %d %v, want %d %q %q %q", tc.method, tc.path, res.StatusCode, res.Header,
				tc.status, tc.kind, tc.cache, tc.location)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s %.60s: %s is %q, want %q", tc.method, tc.path, name, got, want)
			}
		}
	}
}

// TestRevalidation checks that a browser with the current page gets no second copy.
func TestRevalidation(t *testing.T) {
	t.Parallel()
	first := get(t, http.MethodGet, "/docs/")
	if again := get(t, http.MethodGet, "/docs/", "If-None-Match",
		first.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("with the ETag: got %d, want 304", again.StatusCode)
	}
	packed := get(t, http.MethodGet, "/docs/", "Accept-Encoding", "gzip")
	if packed.Header.Get("Content-Encoding") != "gzip" || packed.ContentLength >= first.ContentLength {
		t.Errorf("got encoding %q with %d bytes, want gzip with less than %d", packed.Header.Get("Content-Encoding"),
			packed.ContentLength, first.ContentLength)
	}
}

// TestPolicy checks that the Content Security Policy stays strict, and that pages need nothing that
// it forbids.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, never := range []string{"unsafe", "http:", "https:", "*", "blob:", "data:"} {
		if strings.Contains(policy, never) {
			t.Errorf("policy %q contains %s", policy, never)
		}
	}
	_, contents := rendered(t)
	for location, content := range contents {
		for _, never := range []string{"<style", " style=", " onclick=", "javascript:"} {
			if _, article, _ := strings.Cut(string(content), "<body>"); strings.Contains(tags(article), never) {
				t.Errorf("%s contains %s", location, never)
			}
		}
	}
}

// tags returns only the tags of an HTML text.
func tags(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "<") {
		tag, _, _ := strings.Cut(part, ">")
		b.WriteString("<" + tag + ">")
	}
	return b.String()
}

// searchBudget limits the compressed size of the search index.
const searchBudget = 200 << 10

func TestSearchIndexIsSmall(t *testing.T) {
	t.Parallel()
	res := get(t, http.MethodGet, "/docs/-/search.json", "Accept-Encoding", "gzip")
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("search index has %d bytes", len(body)); len(body) > searchBudget {
		t.Errorf("search index has %d bytes, want at most %d", len(body), searchBudget)
	}
}
