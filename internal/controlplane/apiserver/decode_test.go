package apiserver_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// implementationTerms matches implementation terms that must not appear in messages.
var implementationTerms = regexp.MustCompile(
	`Go (struct|value)|json: |int(32|64)\b|valueUnstructured|map\[|v1alpha1\.|v1\.|handlers\.|` +
		`\bstruct\b|\bslice\b|interface|strconv|2006-01-02T|regular expression|&\{`)

// TestDecodeErrors checks that a decoding error contains the field, the expected type and the
// actual value, for every kind of call.
func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	apply := func(rest string) string {
		return `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User",` + rest + `}`
	}
	const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	tests := map[string]struct {
		method, path, contentType, body string
		code                            int
		want                            string
	}{
		"create, boolean": {
			http.MethodPost, "apikeys", jsonType,
			`{"metadata":{"name":"a"},"spec":{"revoke":"yes"}}`, 400,
			"spec.revoke: expected true or false, not a string",
		},
		"create, time": {
			http.MethodPost, "apikeys", jsonType,
			`{"metadata":{"name":"a"},"spec":{"expirationTime":"tomorrow"}}`, 400,
			`spec.expirationTime: "tomorrow" is not a time`,
		},
		"create, object": {
			http.MethodPost, "apikeys", jsonType, `{"spec":[]}`, 400,
			"spec: expected an object, not an array",
		},
		"create, whole body": {http.MethodPost, "apikeys", jsonType, `[]`, 400, "expected an object, not an array"},
		"create, version": {
			http.MethodPost, "apikeys", jsonType, `{"apiVersion":5}`, 400,
			"apiVersion: expected a string, not a number",
		},
		"create, number": {
			http.MethodPost, "messagingclusters", jsonType,
			`{"spec":{"broker":{"replicas":1.5}}}`, 400,
			"spec.broker.replicas: expected a whole number up to 2147483647, not 1.5",
		},
		"create, quantity": {
			http.MethodPost, "messagingclusters", jsonType,
			`{"spec":{"broker":{"resources":{"memory":"4Gi","cpu":"lots"}}}}`, 400,
			"spec.broker.resources.cpu: a quantity is a number",
		},
		"create, bool quantity": {
			http.MethodPost, "messagingclusters", jsonType,
			`{"spec":{"broker":{"resources":{"cpu":true}}}}`, 400, "spec.broker.resources.cpu: a quantity is a number",
		},
		"create, YAML": {
			http.MethodPost, "apikeys", yamlType, "metadata: {name: 5}", 400,
			"metadata.name: expected a string, not a number",
		},
		"create, YAML, time": {
			http.MethodPost, "apikeys", yamlType, "spec: {expirationTime: soon}", 400,
			`spec.expirationTime: "soon" is not a time`,
		},
		"replace": {
			http.MethodPut, "users/ann", jsonType,
			`{"metadata":{"name":"ann"},"spec":{"email":5}}`, 400, "spec.email: expected a string, not a number",
		},
		"merge patch": {
			http.MethodPatch, "users/ann", mergePatch, `{"spec":{"email":5}}`, 422,
			"spec.email: expected a string, not a number",
		},
		"merge patch, time": {
			http.MethodPatch, "users/ann", mergePatch,
			`{"spec":{"invitation":{"expiration":"x"}}}`, 422, `spec.invitation.expiration: "x" is not a time`,
		},
		"merge patch, no object": {
			http.MethodPatch, "users/ann", mergePatch, `[]`, 400,
			"expected an object, not an array",
		},
		"strategic": {
			http.MethodPatch, "users/ann", strategic, `{"spec":{"email":5}}`, 422,
			"spec.email: expected a string, not a number",
		},
		"strategic, boolean": {
			http.MethodPatch, "users/ann", strategic, `{"spec":{"name":{"first":true}}}`, 422,
			"spec.name.first: expected a string, not true or false",
		},
		"strategic, array": {
			http.MethodPatch, "users/ann", strategic, `{"spec":[]}`, 422,
			"spec: expected an object, not an array",
		},
		"strategic, time": {
			http.MethodPatch, "users/ann", strategic,
			`{"spec":{"invitation":{"expiration":"x"}}}`, 422, `spec.invitation.expiration: "x" is not a time`,
		},
		"strategic, no object": {
			http.MethodPatch, "users/ann", strategic, `5`, 422,
			"expected an object, not a number",
		},
		"JSON patch": {
			http.MethodPatch, "users/ann", jsonPatch,
			`[{"op":"replace","path":"/spec/email","value":5}]`, 422, "spec.email: expected a string, not a number",
		},
		"JSON patch, no array": {
			http.MethodPatch, "users/ann", jsonPatch, `{}`, 400,
			"expected an array, not an object",
		},
		"JSON patch, operation": {
			http.MethodPatch, "users/ann", jsonPatch, `[{"op":5}]`, 400,
			"op: expected a string, not a number",
		},
		"apply": {
			http.MethodPatch, "users/ann?fieldManager=me", applyPatch,
			apply(`"spec":{"email":5}`), 400, ".spec.email: expected a string, not 5",
		},
		"apply, array": {
			http.MethodPatch, "users/ann?fieldManager=me", applyPatch,
			apply(`"spec":{"name":[]}`), 400, ".spec.name: expected an object, not an array",
		},
		"apply, labels": {
			http.MethodPatch, "users/ann?fieldManager=me", applyPatch,
			apply(`"metadata":{"labels":{"a":{"b":1}}}`), 400, ".metadata.labels.a: expected a string, not an object",
		},
		"apply, no object": {
			http.MethodPatch, "users/ann?fieldManager=me", applyPatch, `[]`, 400,
			"expected an object, not an array",
		},
		"apply, time": {
			http.MethodPatch, "users/ann?fieldManager=me", applyPatch,
			apply(`"spec":{"email":"ada@example.com","invitation":{"expiration":"x"}}`), 400, `"x" is not a time`,
		},
		"delete": {
			http.MethodDelete, "users/ann", jsonType, `{"gracePeriodSeconds":"x"}`, 400,
			"gracePeriodSeconds: expected a whole number, not a string",
		},
		"delete, query": {
			http.MethodDelete, "users/ann?gracePeriodSeconds=x", jsonType, ``, 400,
			`gracePeriodSeconds must be a whole number, not "x"`,
		},
		"delete, no object": {http.MethodDelete, "users/ann", jsonType, `[]`, 400, "expected an object, not an array"},
		"review": {
			http.MethodPost, review, jsonType, `{"spec":{"resourceAttributes":{"verb":5}}}`, 400,
			"spec.resourceAttributes.verb: expected a string, not a number",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := a.in(t).call(tc.method, tc.path, tc.body, "Content-Type", tc.contentType).want(tc.code).failure()
			texts := []string{status.Message}
			if status.Details != nil {
				for _, cause := range status.Details.Causes {
					texts = append(texts, cause.Message)
				}
			}
			if !strings.Contains(status.Message, tc.want) {
				t.Errorf("message: got %q, want %q in it", status.Message, tc.want)
			}
			for _, text := range texts {
				if word := implementationTerms.FindString(strings.ReplaceAll(text, "Kind=User", "")); word != "" &&
					!strings.Contains(text, "cloud.vendor.io/v1alpha1,") {
					t.Errorf("implementation term %q in message: %s", word, text)
				}
			}
		})
	}
	a.get("users/ann").want(http.StatusOK).has("spec.email", "ada@example.com")
}

// TestUnauthorizedHasAReason checks that a 401 contains the reason in the message and in the header.
func TestUnauthorizedHasAReason(t *testing.T) {
	t.Parallel()
	a := start(t)
	tests := map[string]struct{ authorization, message, header string }{
		"no token": {"", "no token was given", `Bearer realm="resources"`},
		"wrong token": {
			"Bearer nonsense", "unknown token",
			`Bearer realm="resources", error="invalid_token", error_description="unknown token"`,
		},
		"other scheme": {"Basic YTpi", `the scheme "Basic" is not accepted`, `Bearer realm="resources"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"users", "/apis", "/apis/nothing/v1", "/openapi/v2", "/nowhere"} {
				got := a.in(t).get(path, "Authorization", tc.authorization).want(http.StatusUnauthorized)
				if status := got.failure(); status.Reason != "Unauthorized" ||
					!strings.Contains(status.Message, tc.message) {
					t.Errorf("%s: got %s %q, want %q", path, status.Reason, status.Message, tc.message)
				}
				if header := got.header.Get("WWW-Authenticate"); header != tc.header {
					t.Errorf("%s: WWW-Authenticate: got %q, want %q", path, header, tc.header)
				}
			}
			a.in(t).get("/healthz", "Authorization", tc.authorization).want(http.StatusOK)
		})
	}
}
