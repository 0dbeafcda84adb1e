package registryapi_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/registryapi"
)

var document = sync.OnceValues(func() (*openapi3.T, error) {
	for _, media := range []string{"application/vnd.schemaregistry.v1+json", "application/vnd.schemaregistry+json"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.JSONBodyDecoder)
	}
	return openapi3.NewLoader().LoadFromFile("../../../api/openapi/registry.yaml")
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
}

// TestDocumentIsServed: the OpenAPI document needs no token and no cluster.
func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	s := newServer(t, schemas.Options{})
	for _, at := range []string{"", "/stream"} {
		res, text := do(t, http.MethodGet, s.URL+at+"/registry/v1alpha1/openapi.yaml", nil, "Authorization", "",
			"Accept", "text/html")
		if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "application/yaml" {
			t.Fatalf("got %s of type %q, want 200 of type application/yaml", res.Status, got)
		}
		if doc, err := openapi3.NewLoader().LoadFromData([]byte(text)); err != nil ||
			doc.Info.Title != "Freshet schema registry" {
			t.Errorf("got another document than the registry's: %v", err)
		}
	}
}

// TestChallengeNamesBothSchemes: a client that supports only one of the schemes finds it
// in the challenges.
func TestChallengeNamesBothSchemes(t *testing.T) {
	t.Parallel()
	s := newServer(t, schemas.Options{})
	res, _ := do(t, http.MethodGet, s.URL+"/subjects", nil, "Authorization", "")
	var schemes []string
	for _, challenge := range res.Header.Values("WWW-Authenticate") {
		scheme, _, _ := strings.Cut(challenge, " ")
		schemes = append(schemes, scheme)
	}
	if want := []string{"Bearer", "Basic"}; res.StatusCode != 401 || !slices.Equal(schemes, want) {
		t.Errorf("got %s with challenges %q, want 401 with %q", res.Status, schemes, want)
	}
}

// TestDocumentHasEveryEndpoint checks that the OpenAPI document has the same endpoints as
// the code.
func TestDocumentHasEveryEndpoint(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	for _, endpoint := range registryapi.Endpoints() {
		if !described[endpoint] {
			t.Errorf("%s is not in the OpenAPI document", endpoint)
		}
		delete(described, endpoint)
	}
	for endpoint := range described {
		t.Errorf("%s is in the OpenAPI document but has no route", endpoint)
	}
}

// validate checks a response against the OpenAPI document. It ignores requests whose
// path is not in the document.
func validate(t *testing.T, req *http.Request, reqBody string, res *http.Response, body []byte) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	path, item := findPath(doc, req.URL.EscapedPath())
	if item == nil || item.GetOperation(req.Method) == nil || strings.HasSuffix(path, "/schema") &&
		res.StatusCode == http.StatusOK {
		return
	}
	req.Body = io.NopCloser(strings.NewReader(reqBody))
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req,
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
		t.Errorf("%s %s: response does not match the OpenAPI document: %v", req.Method, req.URL.Path, err)
	}
}

func findPath(doc *openapi3.T, escaped string) (string, *openapi3.PathItem) {
	segments := strings.Split(strings.TrimSuffix(strings.TrimPrefix(escaped, "/stream"), "/"), "/")
next:
	for path, item := range doc.Paths.Map() {
		pattern := strings.Split(path, "/")
		if len(pattern) != len(segments) {
			continue
		}
		for i, p := range pattern {
			if !strings.HasPrefix(p, "{") && p != segments[i] {
				continue next
			}
		}
		return path, item
	}
	return "", nil
}
