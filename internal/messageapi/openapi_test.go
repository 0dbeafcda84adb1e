package messageapi_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"freshet/internal/messageapi"
	"freshet/internal/messaging"
)

var document = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromFile("../../api/openapi/messages.yaml")
})

func loadDocument(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	if err := loadDocument(t).Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	r := w.as("").call("GET", "/admin/rest/openapi.yaml", "").want(200).says("Content-Type", "application/yaml")
	if _, err := openapi3.NewLoader().LoadFromData([]byte(r.body)); err != nil {
		t.Error(err)
	}
}

// TestDocumentHasEveryRoute holds the document and the routes together, and
// what it says of permissions.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	described := map[string]*openapi3.Operation{}
	for path, item := range loadDocument(t).Paths.Map() {
		for method, op := range item.Operations() {
			described[method+" "+path] = op
		}
	}
	for _, route := range messageapi.Routes() {
		key := route.Method + " " + route.Pattern
		op := described[key]
		if op == nil {
			t.Errorf("%s is not in the document", key)
			continue
		}
		delete(described, key)
		if _, extension := op.Extensions["x-extension"]; extension != route.Extension {
			t.Errorf("%s: marked as an extension: %v, want %v", key, extension, route.Extension)
		}
		if said, _ := op.Extensions["x-permission"].(string); said != route.Permissions {
			t.Errorf("%s: x-permission is %q, want %q", key, said, route.Permissions)
		}
	}
	for key := range described {
		t.Errorf("%s is in the document and nowhere else", key)
	}
}

// validate holds a reply against the document; what is no route is not in it.
func validate(t testing.TB, req *http.Request, sent string, res *http.Response, body []byte) {
	t.Helper()
	doc := loadDocument(t)
	path, item := findPath(doc, req.Method, req.URL.EscapedPath())
	if item == nil {
		return
	}
	op := item.GetOperation(req.Method)
	req.Body = io.NopCloser(strings.NewReader(sent))
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req,
			Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: req.Method, Operation: op},
		},
		Status:  res.StatusCode,
		Header:  res.Header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("%s %s: reply %d is not as documented: %v", req.Method, req.URL.Path, res.StatusCode, err)
	}
}

// findPath looks for the path of a request in the document, without the domain
// that message calls may have.
func findPath(doc *openapi3.T, method, escaped string) (string, *openapi3.PathItem) {
	for _, domain := range []string{"persistent/", "non-persistent/"} {
		if rest, ok := strings.CutPrefix(escaped, root+domain); ok {
			escaped = root + rest
		}
	}
	segments := strings.Split(strings.TrimSuffix(escaped, "/"), "/")
	best, bestLiterals := "", -1
next:
	for path, item := range doc.Paths.Map() {
		parts := strings.Split(path, "/")
		if len(parts) != len(segments) || item.GetOperation(method) == nil {
			continue
		}
		literals := 0
		for i, part := range parts {
			if strings.HasPrefix(part, "{") {
				if part == "{domain}" && segments[i] != "persistent" && segments[i] != "non-persistent" {
					continue next
				}
				continue
			}
			if part != segments[i] {
				continue next
			}
			literals++
		}
		if literals > bestLiterals {
			best, bestLiterals = path, literals
		}
	}
	if best == "" {
		return "", nil
	}
	return best, doc.Paths.Value(best)
}
