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

// script is the URL of a file of this build.
func script(t *testing.T, name string) string {
	t.Helper()
	page := body(t, get(t, http.MethodGet, "/console/"))
	m := regexp.MustCompile(`src="(/console/-/[0-9a-f]+/)app\.js"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page does not load app.js:\n%s", page)
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
		t.Errorf("got %q of %d bytes for %d, want gzip and fewer", packed.Header.Get("Content-Encoding"),
			packed.ContentLength, plain.ContentLength)
	}
	if body(t, plain) != body(t, packed) {
		t.Error("what is compressed is not what is sent otherwise")
	}
	if again := get(t, http.MethodGet, app, "If-None-Match",
		plain.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("with the ETag: got %d, want 304", again.StatusCode)
	}
}

// The policy has to stay as strict as it is.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"default-src 'none'", "script-src 'self';", "style-src 'self' 'sha256-",
		"connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not have %s", policy, want)
		}
	}
	for _, never := range []string{"unsafe", "http:", "https:", "*", "blob:"} {
		if strings.Contains(policy, never) {
			t.Errorf("the policy %q has %s", policy, never)
		}
	}
}

// Our own files hold to the rules of docs/howto/console.md.
func TestRules(t *testing.T) {
	t.Parallel()
	never := regexp.MustCompile(
		`\.innerHTML\s*=|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|unsafeHTML|serviceWorker|document\.cookie|<script|\sstyle="|https?://(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev)\b`)
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
			if found := never.FindString(line); found != "" && !strings.Contains(line, "xmlns") {
				t.Errorf("%s:%d has %q", name, i+1, found)
			}
			if strings.Contains(line, "fetch(") && !regexp.MustCompile(`/(api|session)\.js$`).MatchString(name) {
				t.Errorf("%s:%d sends a request past api.js", name, i+1)
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
	const most = 7000
	if t.Logf("%d lines of our own", lines); lines > most {
		t.Errorf("the console has %d lines of its own, want at most %d", lines, most)
	}
}

// Files of others are what VENDORED.md says, and all of them are in it.
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
			t.Errorf("%s has the hash %s, VENDORED.md says %q", short, got, listed[short])
		}
		delete(listed, short)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		t.Errorf("VENDORED.md names %s, which is not there", name)
	}
}

// transferBudget is what a first visit may cost, compressed, without what single
// pages load when they are opened: Swagger UI, uPlot and jsdiff.
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
	if t.Logf("%d bytes for every page but the API reference, which loads %d more", all, apart); all > transferBudget {
		t.Errorf("all pages together cost %d bytes, want at most %d", all, transferBudget)
	}
}

// The units that need no browser are run by Node.
func TestUnits(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT TESTED: there is no node, so the console's unit tests are not run")
	}
	tests, err := filepath.Glob("test/*.test.mjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("found the tests %v, %v", tests, err)
	}
	out, err := exec.CommandContext(t.Context(), node,
		append([]string{"--test", "--test-reporter=tap"}, tests...)...).CombinedOutput()
	if err != nil {
		t.Errorf("the unit tests fail: %v\n%s", err, out)
	}
}
