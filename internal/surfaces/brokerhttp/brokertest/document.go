package brokertest

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

	"freshet/api/openapi"
)

var document = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(openapi.Document("messages"))
})

// Document returns the OpenAPI document of both surfaces.
func Document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Operation is an operation of the OpenAPI document.
type Operation struct {
	Permission string
	Extension  bool
}

// Operations returns the operations with one of the path prefixes, by method and
// pattern.
func Operations(t testing.TB, prefixes ...string) map[string]Operation {
	t.Helper()
	list := map[string]Operation{}
	for path, item := range Document(t).Paths.Map() {
		if !slices.ContainsFunc(prefixes, func(root string) bool { return strings.HasPrefix(path, root) }) {
			continue
		}
		for method, op := range item.Operations() {
			permission, _ := op.Extensions["x-permission"].(string)
			_, extension := op.Extensions["x-extension"]
			list[method+" "+path] = Operation{permission, extension}
		}
	}
	return list
}

// validate checks a response against the OpenAPI document. It ignores requests whose
// path is not in the document.
func validate(t testing.TB, req *http.Request, sent string, res *http.Response, body []byte) {
	t.Helper()
	doc := Document(t)
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
		Status: res.StatusCode,
		Header: res.Header,
		Body:   io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			// The library cannot decode events.
			ExcludeResponseBody: strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"),
		},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("%s %s: response %d does not match the OpenAPI document: %v", req.Method, req.URL.Path,
			res.StatusCode, err)
	}
}

// findPath finds the path of a request in the document. It ignores the optional domain
// of message calls.
func findPath(doc *openapi3.T, method, escaped string) (string, *openapi3.PathItem) {
	for _, domain := range []string{"persistent/", "non-persistent/"} {
		if rest, ok := strings.CutPrefix(escaped, Root+domain); ok {
			escaped = Root + rest
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
