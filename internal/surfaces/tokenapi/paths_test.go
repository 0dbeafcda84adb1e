package tokenapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"freshet/internal/surfaces/tokenapi"
)

func TestDiscoveryAndKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.URL.Path = path
		return f.do(r)
	}
	for _, path := range []string{
		"/.well-known/openid-configuration", "//.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server", "///.well-known/openid-configuration",
	} {
		w := get(path)
		var doc map[string]any
		if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &doc) != nil {
			t.Fatalf("%s: status %d: %s, want 200", path, w.Code, w.Body)
		}
		want := map[string]string{
			"issuer": base, "token_endpoint": base + "/oauth/token", "jwks_uri": base + "/.well-known/jwks.json",
			"authorization_endpoint":        base + "/oauth/authorize",
			"device_authorization_endpoint": base + "/oauth/device_authorization",
			"revocation_endpoint":           base + "/oauth/revoke", "userinfo_endpoint": base + "/oauth/userinfo",
		}
		for name, value := range want {
			if doc[name] != value {
				t.Errorf("%s: %s = %v, want %v", path, name, doc[name], value)
			}
		}
	}
	for _, path := range []string{"/.well-known/jwks.json", "//.well-known/jwks.json", "/oauth/jwks"} {
		if w := get(path); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), f.Keys.JWKS()) {
			t.Errorf("%s: status %d: %s, want 200", path, w.Code, w.Body)
		}
	}
	f.RotateKeys()
	if w := get("/.well-known/jwks.json"); !bytes.Equal(w.Body.Bytes(), f.Keys.JWKS()) {
		t.Error("JWKS after a rotation is not the current one")
	}
}

func TestPathsAndMethodsOfTheSurface(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tests := map[string]struct {
		method, path string
		status       int
		code         string
	}{
		"unknown":                  {"GET", "/oauth/nothing", 404, "not_found"},
		"unknown post":             {"POST", "/oauth/token/x", 404, "not_found"},
		"slash at the end":         {"POST", "/oauth/token/", 404, "not_found"},
		"root":                     {"GET", "/oauth", 404, "not_found"},
		"root with slash":          {"GET", "/oauth/", 404, "not_found"},
		"GET token":                {"GET", "/oauth/token", 405, "invalid_request"},
		"DELETE token":             {"DELETE", "/oauth/token", 405, "invalid_request"},
		"sign-in page":             {"GET", "/oauth/authorize", 404, "not_found"},
		"device authorization":     {"POST", "/oauth/device_authorization", 400, "unauthorized_client"},
		"GET revoke":               {"GET", "/oauth/revoke", 405, "invalid_request"},
		"userinfo without a token": {"GET", "/oauth/userinfo", 401, "invalid_token"},
		"device, second path":      {"POST", "/oauth/device/code", 400, "unauthorized_client"},
		"double slash unknown":     {"GET", "//oauth/nothing", 404, "not_found"},
		"double slash token, POST": {"POST", "//oauth/token", 400, "invalid_request"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, "/x", nil)
			r.URL.Path = tc.path
			w := f.do(r)
			if got := decode(t, w); w.Code != tc.status || got.Error != tc.code || got.Description == "" {
				t.Errorf("got status %d: %s, want %d, %s", w.Code, w.Body, tc.status, tc.code)
			}
			if (tc.status == 405) != (w.Header().Get("Allow") == "POST") {
				t.Errorf("status %d: got Allow %q, want POST for status 405 only", w.Code, w.Header().Get("Allow"))
			}
		})
	}
	for _, path := range []string{"/subjects", "/.well-known/other", "/oauthx"} {
		if w := f.do(httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusTeapot {
			t.Errorf("%s: status %d, want %v", path, w.Code, http.StatusTeapot)
		}
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	t.Parallel()
	if _, err := tokenapi.New(tokenapi.Options{}); err == nil {
		t.Error("New accepted empty options, want an error")
	}
}

var document = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromFile("../../../api/openapi/token.yaml")
})

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if w := f.do(httptest.NewRequest(method, path, nil)); w.Code == http.StatusNotFound ||
				w.Code == http.StatusTeapot {
				t.Errorf("%s %s is in the OpenAPI document but is not served", method, path)
			}
		}
	}
}

// validate checks a response against the OpenAPI document.
func validate(t testing.TB, req *http.Request, reqBody []byte, res *http.Response, body []byte) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	path := "/" + strings.TrimLeft(req.URL.Path, "/")
	item := doc.Paths.Value(path)
	if item == nil || item.GetOperation(req.Method) == nil {
		return
	}
	r := req.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(reqBody))
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r,
			Route: &routers.Route{
				Spec: doc, Path: path, PathItem: item, Method: req.Method,
				Operation: item.GetOperation(req.Method),
			},
		},
		Status:  res.StatusCode,
		Header:  res.Header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("%s %s: response does not match the OpenAPI document: %v", req.Method, path, err)
	}
}
