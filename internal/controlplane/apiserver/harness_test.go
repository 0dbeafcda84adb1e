package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/ops/telemetry"
	"freshet/test/parallel"
)

const (
	apiPath    = "/apis/cloud.vendor.io/v1alpha1"
	acme       = apiPath + "/namespaces/acme"
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	strategic  = "application/strategic-merge-patch+json"
	applyPatch = "application/apply-patch+yaml"

	yamlType    = "application/yaml"
	jsonType    = "application/json"
	tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// TestMain limits the log of the libraries to warnings, so that failures are visible in the output. Many tests wait
// for the end of a watch or for a compaction.
func TestMain(m *testing.M) {
	telemetry.BridgeKlog(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	parallel.Set(6)
	os.Exit(m.Run())
}

// api is a running server with one caller.
type api struct {
	*testing.T
	server *kindstest.Server
	token  string
}

func start(t *testing.T) *api {
	t.Helper()
	return &api{t, kindstest.Start(t, kindstest.Options{}), kindstest.AdminToken}
}

// in returns the same server for a subtest.
func (a *api) in(t *testing.T) *api { return &api{t, a.server, a.token} }

// as returns the same server with another caller.
func (a *api) as(token string) *api { return &api{a.T, a.server, token} }

// reply is a response with its whole body.
type reply struct {
	*testing.T
	request string
	code    int
	header  http.Header
	body    []byte
}

// call sends a request; a path without a leading slash is in the organization acme. A body that is
// not a string is sent as JSON. Headers are pairs; an empty value removes the header.
func (a *api) call(method, path string, body any, headers ...string) reply {
	a.Helper()
	res, err := http.DefaultClient.Do(a.request(method, path, body, headers...))
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{a.T, method + " " + path, res.StatusCode, res.Header, text}
}

func (a *api) request(method, path string, body any, headers ...string) *http.Request {
	a.Helper()
	if !strings.HasPrefix(path, "/") {
		path = acme + "/" + path
	}
	req, err := http.NewRequestWithContext(a.Context(), method, a.server.URL+path, content(body))
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "bearer "+a.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func content(body any) io.Reader {
	switch b := body.(type) {
	case nil:
		return http.NoBody
	case string:
		return strings.NewReader(b)
	case []byte:
		return strings.NewReader(string(b))
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a mistake in the test itself
	}
	return strings.NewReader(string(text))
}

func (a *api) get(path string, headers ...string) reply {
	a.Helper()
	return a.call(http.MethodGet, path, nil, headers...)
}

func (a *api) post(path string, body any, headers ...string) reply {
	a.Helper()
	return a.call(http.MethodPost, path, body, headers...)
}

func (a *api) put(path string, body any, headers ...string) reply {
	a.Helper()
	return a.call(http.MethodPut, path, body, headers...)
}

func (a *api) patch(path, contentType string, body any) reply {
	a.Helper()
	return a.call(http.MethodPatch, path, body, "Content-Type", contentType)
}

func (a *api) delete(path string) reply {
	a.Helper()
	return a.call(http.MethodDelete, path, nil)
}

// want fails the test unless the response has one of the codes.
func (r reply) want(codes ...int) reply {
	r.Helper()
	if !slices.Contains(codes, r.code) {
		r.Fatalf("%s: got %d, want %v\n%s", r.request, r.code, codes, r.body)
	}
	return r
}

// object returns the body as JSON.
func (r reply) object() map[string]any {
	r.Helper()
	var object map[string]any
	if err := json.Unmarshal(r.body, &object); err != nil {
		r.Fatalf("%s: decoding the body as a JSON object: %v\n%s", r.request, err, r.body)
	}
	return object
}

// at returns a value of the body by its path, such as metadata.name or items.0.spec, or nil.
func (r reply) at(path string) any {
	r.Helper()
	return at(r.object(), path)
}

func at(value any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// has checks values of the body, in pairs of path and value as fmt prints it.
func (r reply) has(pairs ...string) reply {
	r.Helper()
	object := r.object()
	for i := 0; i < len(pairs); i += 2 {
		got := fmt.Sprint(at(object, pairs[i]))
		if got != pairs[i+1] {
			r.Errorf("%s: %s: got %s, want %s", r.request, pairs[i], got, pairs[i+1])
		}
	}
	return r
}

// version returns the resourceVersion of the object or list.
func (r reply) version() string {
	r.Helper()
	version, _ := r.at("metadata.resourceVersion").(string)
	return version
}

// failure checks that the body is a complete Status and returns it.
func (r reply) failure() metav1.Status {
	r.Helper()
	var status metav1.Status
	if err := json.Unmarshal(r.body, &status); err != nil {
		r.Fatalf("%s: decoding the body as a Status: %v\n%s", r.request, err, r.body)
	}
	if status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure ||
		int(status.Code) != r.code || status.Reason == "" && r.code != http.StatusMethodNotAllowed ||
		status.Message == "" {
		r.Errorf("%s: got an incomplete Status: %s", r.request, r.body)
	}
	return status
}

// causes returns the fields in the causes of a 422.
func (r reply) causes() []string {
	r.Helper()
	var fields []string
	if details := r.failure().Details; details != nil {
		for _, cause := range details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	slices.Sort(fields)
	return fields
}

// names returns the names of a list's items.
func (r reply) names() []string {
	r.Helper()
	items, _ := r.want(http.StatusOK).at("items").([]any)
	names := make([]string, 0, len(items))
	for _, item := range items {
		names = append(names, fmt.Sprint(at(item, "metadata.name")))
	}
	return names
}

func contains(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
