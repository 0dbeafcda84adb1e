package registryapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/ops/audit"
	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/registryapi"
)

func do(t testing.TB, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer admin")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func TestBodyOfFiveMebibytes(t *testing.T) {
	t.Parallel()
	s := newServer(t, schemas.Options{})
	const limit = 5 << 20
	frame := len(`{"schema":"\"string\"","metadata":""}`)
	fits := `{"schema":"\"string\"","metadata":"` + strings.Repeat("x", limit-frame) + `"}`
	if len(fits) != limit {
		t.Fatalf("test body has %d bytes, want %d", len(fits), limit)
	}
	for name, c := range map[string]struct {
		body   io.Reader
		status int
	}{
		"at the limit":             {strings.NewReader(fits), 200},
		"over the limit":           {strings.NewReader(fits + " "), 413},
		"at the limit, chunked":    {io.MultiReader(strings.NewReader(fits)), 200},
		"over the limit, chunked":  {io.MultiReader(strings.NewReader(fits), strings.NewReader(" ")), 413},
		"far over it, in one body": {strings.NewReader(strings.Repeat("x", 4*limit)), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/subjects/s/versions", c.body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer admin")
			req.Header.Set("Expect", "100-continue") // as clients with large bodies do
			client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Second}}
			defer client.CloseIdleConnections()
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != c.status || c.status == 413 && !bytes.Contains(body, []byte(`"error_code":413`)) {
				t.Errorf("got status %d: %s, want %d", res.StatusCode, body, c.status)
			}
		})
	}
}

// TestBodyInUTF16: a body in UTF-16 is rejected, because JSON is UTF-8 (RFC 8259).
func TestBodyInUTF16(t *testing.T) {
	t.Parallel()
	s := newServer(t, schemas.Options{})
	for name, body := range map[string]string{
		"little endian": "\xff\xfe{\x00}\x00", "big endian": "\xfe\xff\x00{\x00}", "without a mark": "{\x00}\x00",
	} {
		res, text := do(t, http.MethodPut, s.URL+"/config/s", strings.NewReader(body), "Content-Type",
			"application/vnd.schemaregistry.v1+json; charset=utf-16")
		if res.StatusCode != http.StatusBadRequest || !strings.HasPrefix(text, `{"error_code":400,`) {
			t.Errorf("%s: got %d %s, want 400 with its code", name, res.StatusCode, text)
		}
	}
}

func TestImmutableRepliesAreRevalidated(t *testing.T) {
	t.Parallel()
	s := newServer(t, schemas.Options{})
	do(t, http.MethodPost, s.URL+"/subjects/s/versions", strings.NewReader(`{"schema":"\"string\""}`))
	for _, path := range []string{"/schemas/ids/1", "/schemas/ids/1/schema"} {
		res, body := do(t, http.MethodGet, s.URL+path, nil)
		tag := res.Header.Get("ETag")
		if tag == "" || body == "" || res.Header.Get("Cache-Control") == "" {
			t.Fatalf("%s: got header %v, body %q, want ETag, Cache-Control and a body", path, res.Header, body)
		}
		again, body := do(t, http.MethodGet, s.URL+path, nil, "If-None-Match", tag)
		if again.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s with the same ETag: got %d %q, want %d without a body", path, again.StatusCode, body,
				http.StatusNotModified)
		}
		other, _ := do(t, http.MethodGet, s.URL+path, nil, "If-None-Match", `"x"`)
		if other.StatusCode != http.StatusOK {
			t.Errorf("%s with another ETag: got %d, want %d", path, other.StatusCode, http.StatusOK)
		}
	}
}

func TestExportAndImportOverHTTP(t *testing.T) {
	t.Parallel()
	from, to := newServer(t, schemas.Options{}), newServer(t, schemas.Options{})
	do(t, http.MethodPost, from.URL+"/subjects/a/versions", strings.NewReader(`{"schema":"\"string\""}`))
	do(t, http.MethodPost, from.URL+"/subjects/b/versions",
		strings.NewReader(`{"schema":"{\"type\":\"object\"}","schemaType":"JSON"}`))
	do(t, http.MethodPut, from.URL+"/config/b", strings.NewReader(`{"compatibility":"FULL"}`))
	res, file := do(t, http.MethodGet, from.URL+"/registry/v1alpha1/export", nil, "Accept", "application/x-ndjson")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(res.Status, file)
	}
	res, text := do(t, http.MethodPost, to.URL+"/registry/v1alpha1/import", strings.NewReader(file), "Content-Type",
		"application/x-ndjson")
	if res.StatusCode != 200 || text != `{"versions":2,"levels":1,"known":0}` {
		t.Fatal(res.Status, text)
	}
	if _, text := do(t, http.MethodGet, to.URL+"/subjects/b/versions/1",
		nil); text != `{"subject":"b","version":1,"id":2,"schemaType":"JSON","schema":"{\"type\":\"object\"}"}` {
		t.Errorf("imported version: got %s, want b with id 2", text)
	}
}

// TestCancelledRequest: a canceled request gets error 50002 and not a partial response.
func TestCancelledRequest(t *testing.T) {
	t.Parallel()
	h := newHandler(newRegistry(t, schemas.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequest(http.MethodPost, "/subjects/s/versions",
		strings.NewReader(`{"schema":"\"string\""}`)).WithContext(ctx)
	req.Header.Set("Authorization", "Bearer admin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != 500 || !strings.Contains(w.Body.String(), "50002") {
		t.Errorf("got %d %s, want 500 with code 50002", w.Code, w.Body)
	}
}

// FuzzRequest fuzzes methods, paths and bodies. Every response has a status of
// docs/spec/registry.md#errors, and every error body is JSON.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/subjects", "deleted=true", "", "*/*", "application/json")
	f.Add("POST", "/subjects/s/versions", "normalize=true", `{"schema":"\"string\""}`, "", "")
	f.Add("POST", "/subjects/s%2Ft/versions/", "",
		`{"schema":"{}","schemaType":"JSON","references":[{"name":"a","subject":"s","version":-1}]}`, "application/*",
		"application/octet-stream")
	f.Add("POST", "/subjects/p/versions", "",
		`{"schema":"syntax = \"proto3\"; message M { string a = 1; }","schemaType":"PROTOBUF"}`, "", "")
	f.Add("DELETE", "/subjects/s/versions/latest", "permanent=true", "", "", "")
	f.Add("PUT", "/config/s", "", `{"compatibility":"full"}`, "", "")
	f.Add("POST", "/compatibility/subjects/s/versions/1", "verbose=true", `{"schema":"\"int\""}`, "", "")
	f.Add("GET", "/schemas/ids/1/versions", "offset=1&limit=0", "", "text/html;q=0", "")
	f.Add("GET", "//schemas//ids/%zz", "%", "", "*/x", "")
	f.Add("POST", "/registry/v1alpha1/diff", "",
		`{"from":{"subject":"s","version":1},"to":{"subject":"s","schema":"\"int\""}}`, "", "")
	h := newHandler(newRegistry(f, schemas.Options{}))
	f.Fuzz(func(t *testing.T, method, path, query, body, accept, contentType string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://registry/", strings.NewReader(body))
		if err != nil || method == http.MethodConnect {
			return
		}
		if u, err := req.URL.Parse("http://registry" + path + "?" + query); err == nil {
			req.URL = u
		} else {
			req.URL.Path, req.URL.RawQuery = path, query
		}
		req.Header.Set("Authorization", "Bearer admin")
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		switch w.Code {
		case 200, 204, 304, 400, 404, 409, 412, 413, 415, 422:
		default:
			t.Errorf("%s %q: got status %d %s, want a specified status", method, path, w.Code, w.Body)
		}
		if w.Code >= 400 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: error body %q is not JSON", method, path, w.Body)
		}
	})
}

// auditor stores audit records.
type auditor struct {
	fixture
	records []audit.Record
}

func (a *auditor) Record(r audit.Record) { a.records = append(a.records, r) }

func TestChangesAndDenialsAreRecorded(t *testing.T) {
	t.Parallel()
	a := &auditor{fixture: fixture{registry: newRegistry(t, schemas.Options{})}}
	h := web.Middleware(registryapi.New(registryapi.Options{
		Resolver: a, Options: pipeline.Options{Authenticator: a, Authorizer: a, Auditor: a},
	}), slog.New(slog.DiscardHandler), nil)
	for _, c := range []struct {
		method, path, token, body string
		want                      string // verb resource decision status scope
	}{
		{"GET", "/subjects", "admin", "", ""},
		{"POST", "/subjects/s/versions", "admin", `{"schema":"\"int\""}`, "create subjects allow 200 s admin"},
		{"POST", "/subjects/s/versions", "admin", `{"schema":"\"int\""}`, ""},
		{"POST", "/subjects/s/versions", "admin", `{"schema":"x"}`, ""},
		{"POST", "/subjects/s", "admin", `{"schema":"\"int\""}`, ""},
		{"GET", "/schemas/ids/1", "admin", "", ""},
		{"GET", "/schemas/ids/1", "reader", "", "describe subjects deny 403  reader"},
		{"GET", "/subjects/s/versions", "reader", "", "describe subjects deny 403 s reader"},
		{"GET", "/subjects", "wrong", "", "get /subjects deny 401  "},
		{"PUT", "/config/s", "admin", `{"compatibility":"NONE"}`, "update subjects allow 200 s admin"},
		{"PUT", "/mode", "admin", `{"mode":"READONLY"}`, "update mode allow 200  admin"},
		{"PUT", "/mode", "writer", `{"mode":"READWRITE"}`, "update mode deny 403  writer"},
		{"PUT", "/mode", "admin", `{"mode":"READWRITE"}`, "update mode allow 200  admin"},
		{"DELETE", "/subjects/s/versions/1", "admin", "", "delete subjects allow 200 s admin"},
		{"DELETE", "/subjects/s?permanent=true", "admin", "", "delete subjects allow 200 s admin"},
		{"DELETE", "/subjects/s", "admin", "", ""},
	} {
		a.records = nil
		req := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		req.Header.Set("Authorization", "Bearer "+c.token)
		h.ServeHTTP(httptest.NewRecorder(), req)
		got := ""
		for _, r := range a.records {
			_, subject, _ := strings.Cut(r.Scope, "/subject/")
			got += strings.Join([]string{
				r.Verb, r.Resource, string(r.Decision), strconv.Itoa(r.Status), subject,
				r.Principal,
			}, " ")
		}
		if got != c.want {
			t.Errorf("%s %s as %s: got audit records %q, want %q", c.method, c.path, c.token, got, c.want)
		}
	}
}

func TestBusyServerReturnsRetryAfter(t *testing.T) {
	t.Parallel()
	limiter := web.NewLimiter(1, 1<<20)
	a := fixture{registry: newRegistry(t, schemas.Options{})}
	h := registryapi.New(registryapi.Options{
		Resolver: a,
		Options:  pipeline.Options{Authenticator: a, Authorizer: a, Limiter: limiter},
	})
	request := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/subjects", nil)
		r.Header.Set("Authorization", "Bearer admin")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if err := limiter.Enter(web.Caller{}); err != nil {
		t.Fatal(err)
	}
	w := request()
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" ||
		!strings.HasPrefix(w.Body.String(), `{"error_code":503,`) {
		t.Errorf("busy server: got %d %v %s, want 503 with Retry-After 1", w.Code, w.Header(), w.Body)
	}
	limiter.Leave(web.Caller{})
	if w := request(); w.Code != http.StatusOK {
		t.Errorf("after Leave: got %d %s, want 200", w.Code, w.Body)
	}
}
