package console

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func get(t *testing.T, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://h"+path, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	var from io.Reader = res.Body
	if res.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		from = unpacked
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// script returns the URL of a file of this build.
func script(t *testing.T, name string) string {
	t.Helper()
	page := body(t, get(t, http.MethodGet, "/console/"))
	m := regexp.MustCompile(`src="(/console/-/[0-9a-f]+/)app\.js"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("page does not load app.js:\n%s", page)
	}
	return m[1] + name
}

func TestServing(t *testing.T) {
	t.Parallel()
	app := script(t, "app.js")
	for _, tc := range []struct {
		method, path string
		status       int
		kind, cache  string
	}{
		{"GET", "/console", 308, "", ""},
		{"GET", "/console/", 200, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/console/acme/clusters/prod", 200, "text/html; charset=utf-8", "no-cache"},
		{"HEAD", "/console/", 200, "text/html; charset=utf-8", "no-cache"},
		{"GET", app, 200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"GET", script(t, "console.css"), 200, "text/css; charset=utf-8", "public, max-age=31536000, immutable"},
		{"GET", script(t, "icon.svg"), 200, "image/svg+xml", "public, max-age=31536000, immutable"},
		{"GET", "/console/-/0000000000000000/app.js", 404, "text/plain; charset=utf-8", "no-store"},
		{"GET", script(t, "../console.go"), 404, "text/plain; charset=utf-8", "no-store"},
		{"GET", script(t, "index.html"), 404, "text/plain; charset=utf-8", "no-store"},
		{"POST", "/console/", 405, "text/plain; charset=utf-8", ""},
	} {
		res := get(t, tc.method, tc.path)
		if res.StatusCode != tc.status || res.Header.Get("Content-Type") != tc.kind ||
			res.Header.Get("Cache-Control") != tc.cache {
			t.Errorf("%s %s: got %d %q %q, want %d %q %q", tc.method, tc.path, res.StatusCode,
				res.Header.Get("Content-Type"), res.Header.Get("Cache-Control"), tc.status, tc.kind, tc.cache)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", tc.method, tc.path, name, got, want)
			}
		}
	}
}

func TestCompressedAndNotSentTwice(t *testing.T) {
	t.Parallel()
	app := script(t, "app.js")
	plain, packed := get(t, http.MethodGet, app), get(t, http.MethodGet, app, "Accept-Encoding", "gzip, br")
	if packed.Header.Get("Content-Encoding") != "gzip" || packed.ContentLength >= plain.ContentLength {
		t.Errorf("got encoding %q with %d bytes, want gzip with less than %d", packed.Header.Get("Content-Encoding"),
			packed.ContentLength, plain.ContentLength)
	}
	if body(t, plain) != body(t, packed) {
		t.Error("compressed body differs from the uncompressed one")
	}
	if again := get(t, http.MethodGet, app, "If-None-Match",
		plain.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("with the ETag: got %d, want 304", again.StatusCode)
	}
}

// TestPolicy checks that the Content Security Policy stays strict.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"default-src 'none'", "script-src 'self';", "style-src 'self' 'sha256-",
		"connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q does not contain %s", policy, want)
		}
	}
	for _, never := range []string{"unsafe", "http:", "https:", "*", "blob:"} {
		if strings.Contains(policy, never) {
			t.Errorf("policy %q contains %s", policy, never)
		}
	}
}

// TestRules checks our own files against the rules of docs/howto/console.md, and the length of their lines.
func TestRules(t *testing.T) {
	t.Parallel()
	never := regexp.MustCompile(`\.innerHTML\s*=|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|` +
		`unsafeHTML|serviceWorker|document\.cookie|<script|\sstyle="|` +
		`https?://(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev)\b`)
	lines := 0
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "static/vendor/") {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		lines += strings.Count(string(text), "\n")
		if name == "static/index.html" {
			return nil
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > 120 {
				t.Errorf("%s:%d has %d columns, want at most 120", name, i+1, n)
			}
			if found := never.FindString(line); found != "" && !strings.Contains(line, "xmlns") {
				t.Errorf("%s:%d contains %q", name, i+1, found)
			}
			if strings.Contains(line, "fetch(") && !regexp.MustCompile(`/(api|session)\.js$`).MatchString(name) {
				t.Errorf("%s:%d sends a request without api.js", name, i+1)
			}
			if strings.Contains(line, "localStorage") && name != "static/lib/store.js" &&
				!strings.Contains(line, "//") {
				t.Errorf("%s:%d uses localStorage", name, i+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 13000
	if t.Logf("console has %d lines of its own", lines); lines > limit {
		t.Errorf("console has %d lines of its own, want at most %d", lines, limit)
	}
}

// TestVendored checks that VENDORED.md lists every vendored file with its hash.
func TestVendored(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("VENDORED.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range regexp.MustCompile(
		"(?m)^\\| `([^`]+)` \\| \\S+ \\| \\S+ \\| \\S+ \\| `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(text),
		-1) {
		listed[m[1]] = m[2]
	}
	err = fs.WalkDir(files, "static/vendor", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		short := strings.TrimPrefix(name, "static/vendor/")
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != listed[short] {
			t.Errorf("%s has the hash %s, VENDORED.md lists %q", short, got, listed[short])
		}
		delete(listed, short)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		t.Errorf("VENDORED.md lists %s, which does not exist", name)
	}
}

// transferBudget limits the compressed size of all files except Swagger UI, which only the
// API reference loads.
const transferBudget = 300 << 10

func TestTransfer(t *testing.T) {
	t.Parallel()
	heavy := map[string]bool{"vendor/swagger-ui-bundle.js": true, "vendor/swagger-ui.css": true}
	var all, apart int64
	for name := range embedded().assets {
		if name == "index.html" {
			continue
		}
		n := get(t, http.MethodGet, script(t, name), "Accept-Encoding", "gzip").ContentLength
		if heavy[name] {
			apart += n
		} else {
			all += n
		}
	}
	if t.Logf("all pages load %d bytes, the API reference %d more", all, apart); all > transferBudget {
		t.Errorf("all pages load %d bytes, want at most %d", all, transferBudget)
	}
}

// TestUnits runs the unit tests that need no browser with Node.
func TestUnits(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT TESTED: node is not installed, so the unit tests of the console do not run")
	}
	tests, err := filepath.Glob("test/*.test.mjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("got unit tests %v and error %v, want at least one test", tests, err)
	}
	out, err := exec.CommandContext(t.Context(), node,
		append([]string{"--test", "--test-reporter=tap"}, tests...)...).CombinedOutput()
	if err != nil {
		t.Errorf("unit tests failed: %v\n%s", err, out)
	}
}
