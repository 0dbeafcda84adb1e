package resources_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"freshet/internal/resources/resourcestest"
)

const base = "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/"

func call(t *testing.T, s *resourcestest.Server, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+resourcestest.AdminToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
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
	return res.StatusCode, string(text)
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	s := resourcestest.Start(t, resourcestest.Options{})
	for _, step := range []struct{ method, path, body string }{
		{"GET", "/version", ""},
		{"GET", "/readyz?verbose", ""},
		{"GET", "/apis", ""},
		{"GET", "/apis/cloud.vendor.io/v1alpha1", ""},
		{"POST", base + "serviceaccounts", `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":"robot"}}`},
		{"GET", base + "serviceaccounts", ""},
		{"POST", base + "messaginginstances", `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"MessagingInstance","metadata":{"name":"i"},"spec":{}}`},
		{"POST", base + "messagingclusters", `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"MessagingCluster","metadata":{"name":""},"spec":{"instanceName":"i","location":"local","broker":{"replicas":2,"resources":{"cpu":"400m","memory":"1.6Gi"}}}}`},
		{"DELETE", base + "messaginginstances/i", ""},
		{"DELETE", base + "serviceaccounts/robot?gracePeriodSeconds=-1", ""},
		{"GET", base + "serviceaccounts/robot?resourceVersion=abc", ""},
		{"PATCH", base + "serviceaccounts/robot?fieldManager=x", `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":"robot"},"spec":{"nope":1}}`},
	} {
		ct := "application/json"
		if step.method == "PATCH" {
			ct = "application/apply-patch+yaml"
		}
		code, text := call(t, s, step.method, step.path, step.body, "Content-Type", ct)
		if len(text) > 1500 {
			text = text[:1500]
		}
		t.Logf("%s %s -> %d %s", step.method, step.path, code, text)
	}
}
