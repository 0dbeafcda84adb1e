package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"freshet/internal/controlplane/kinds/kindstest"
)

func TestDiscovery(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.get("/apis").want(http.StatusOK).has("kind", "APIGroupList")
	a.get("/apis/cloud.vendor.io").want(http.StatusOK).has("kind", "APIGroup", "versions.0.groupVersion",
		"cloud.vendor.io/v1alpha1", "preferredVersion.version", "v1alpha1")
	var list metav1.APIResourceList
	if err := json.Unmarshal(a.get(apiPath).want(http.StatusOK).body, &list); err != nil {
		t.Fatal(err)
	}
	served := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		served[r.Name] = r
	}
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for _, k := range append(slices.Clone(kinds), readOnly...) {
		r, ok := served[k.plural]
		if !ok {
			t.Errorf("discovery lacks %s", k.plural)
			continue
		}
		if r.Kind != k.kind || r.SingularName != strings.ToLower(k.kind) ||
			!slices.Equal(r.ShortNames, []string{k.short}) {
			t.Errorf("discovery of %s: got kind %s, singular %s, short names %q", k.plural, r.Kind,
				r.SingularName, r.ShortNames)
		}
		if r.Namespaced != (k.kind != "ClusterRole") {
			t.Errorf("%s: got namespaced %v, want %v", k.plural, r.Namespaced, !r.Namespaced)
		}
		if !slices.Equal(r.Verbs, verbs) {
			t.Errorf("verbs of %s: got %q, want %q", k.plural, r.Verbs, verbs)
		}
		if inAll := slices.Contains(r.Categories, "all"); inAll != slices.ContainsFunc(kinds,
			func(other kind) bool { return other.kind == k.kind }) {
			t.Errorf("%s: got in category all %v, want %v", k.plural, inAll, !inAll)
		}
		if status, ok := served[k.plural+"/status"]; !ok ||
			!slices.Equal(status.Verbs, []string{"get", "patch", "update"}) {
			t.Errorf("verbs of %s/status: got %v, want get, patch and update", k.plural, status.Verbs)
		}
	}
	if rotate := served["serviceaccounts/rotate"]; !slices.Equal(rotate.Verbs, []string{"create"}) {
		t.Errorf("verbs of serviceaccounts/rotate: got %v, want create", rotate.Verbs)
	}
	if want := 2*(len(kinds)+len(readOnly)) + 1; len(served) != want { // each kind, its status, and rotate
		t.Errorf("got %d resources, want %d", len(served), want)
	}
}

func TestAggregatedDiscovery(t *testing.T) {
	t.Parallel()
	a := start(t)
	res := a.get("/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").want(
		http.StatusOK)
	res.has("kind", "APIGroupDiscoveryList")
	for _, item := range res.at("items").([]any) {
		if at(item, "metadata.name") != "cloud.vendor.io" {
			continue
		}
		resources, _ := at(item, "versions.0.resources").([]any)
		if want := len(kinds) + len(readOnly); len(resources) != want || at(item, "versions.0.version") != "v1alpha1" {
			t.Errorf("got %d resources, want %d", len(resources), want)
		}
		return
	}
	t.Errorf("discovery lacks the API group: %s", res.body)
}

func TestVersionAndHealth(t *testing.T) {
	t.Parallel()
	a := start(t)
	shown, _ := a.get("/version").want(http.StatusOK).has("major", "1").at("gitVersion").(string)
	// This test is built without the Makefile's flags.
	if v, err := version.ParseSemantic(shown); err != nil || v.Major() != 1 || v.Minor() < 37 {
		t.Errorf("version for kubectl: got %q: %v", shown, err)
	}
	if _, ours, ok := strings.Cut(shown, "+freshet."); !ok || ours == "" {
		t.Errorf("version: got %q, want ours after the plus sign", shown)
	}
	kindstest.Eventually(a, "the start hooks are done", func() bool { return a.get("/readyz").code == http.StatusOK })
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		if body := string(a.get(path).want(http.StatusOK).body); body != "ok" {
			t.Errorf("%s: got %q, want ok", path, body)
		}
		body := string(a.get(path + "?verbose=1").want(http.StatusOK).body)
		if of := path != "/livez"; !contains(body, "check passed") || contains(body, "[+]etcd ok") != of {
			t.Errorf("%s: got %q, want a check of etcd: %v", path, body, of)
		}
	}
}

// TestReadyMeansListed checks that a client that waits for /readyz gets no 429 for its first list.
func TestReadyMeansListed(t *testing.T) {
	t.Parallel()
	a := &api{t, kindstest.Start(t, kindstest.Options{SkipWarmup: true}), kindstest.AdminToken}
	for range 5 {
		kindstest.Eventually(a, "it is ready", func() bool { return a.get("/readyz").code == http.StatusOK })
		for _, path := range []string{namespaces, "/api/v1/events", "/apis/events.k8s.io/v1/events"} {
			a.get(path).want(http.StatusOK)
		}
		for _, kind := range append(slices.Clone(kinds), readOnly...) {
			a.get(apiPath + "/" + kind.plural).want(http.StatusOK)
		}
		a.server.Restart()
	}
}

// operation returns an operation of an OpenAPI document of either version.
func operation(doc map[string]any, path, method string) map[string]any {
	paths, _ := doc["paths"].(map[string]any)
	item, _ := paths[path].(map[string]any)
	op, _ := item[method].(map[string]any)
	return op
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	a := start(t)
	v2 := a.get("/openapi/v2").want(http.StatusOK).object()
	paths, _ := a.get("/openapi/v3").want(http.StatusOK).at("paths").(map[string]any)
	if paths["apis/cloud.vendor.io/v1alpha1"] == nil {
		t.Errorf("OpenAPI v3: got %v, want our API group", paths)
	}
	v3 := a.get("/openapi/v3" + apiPath).want(http.StatusOK).object()
	for version, doc := range map[string]map[string]any{"v2": v2, "v3": v3} {
		schemas, _ := doc["definitions"].(map[string]any)
		if version == "v3" {
			schemas, _ = at(doc, "components.schemas").(map[string]any)
		}
		for _, k := range append(slices.Clone(kinds), readOnly...) {
			items := apiPath + "/namespaces/{namespace}/" + k.plural
			if k.kind == "ClusterRole" {
				items = apiPath + "/" + k.plural
			}
			for path, methods := range map[string][]string{
				items:                    {"get", "post", "delete"},
				items + "/{name}":        {"get", "put", "patch", "delete"},
				items + "/{name}/status": {"get", "put", "patch"},
			} {
				for _, method := range methods {
					op := operation(doc, path, method)
					if op == nil || op["description"] == "" || op["operationId"] == "" {
						t.Errorf("%s: %s %s has no description or operationId", version, method, path)
					}
				}
			}
			post, put := operation(doc, items+"/{name}", "post"), operation(doc, items+"/{name}", "put")
			if k.kind != "ClusterRole" &&
				(post == nil || post["operationId"] == put["operationId"] ||
					!strings.Contains(fmt.Sprint(post["description"]), "replace")) {
				t.Errorf("%s: description of POST on %s: got %v, want a replace", version,
					items+"/{name}", post["description"])
			}
			schema, _ := schemas["io.vendor.cloud.v1alpha1."+k.kind].(map[string]any)
			if schema == nil || fmt.Sprint(schema["description"]) == "" ||
				!strings.Contains(fmt.Sprint(schema["description"]), k.kind) {
				t.Errorf("%s: description of the schema of %s: got %v", version, k.kind, schema["description"])
			}
			spec, _ := schemas["io.vendor.cloud.v1alpha1."+k.kind+"Spec"].(map[string]any)
			for field, property := range properties(spec) {
				if fmt.Sprint(at(property, "description")) == "<nil>" {
					t.Errorf("%s: %s.spec.%s has no description", version, k.kind, field)
				}
			}
		}
	}
	gvk, _ := json.Marshal(at(v2["definitions"].(map[string]any)["io.vendor.cloud.v1alpha1.User"],
		"x-kubernetes-group-version-kind"))
	if want := `[{"group":"cloud.vendor.io","kind":"User","version":"v1alpha1"}]`; string(gvk) != want {
		t.Errorf("kind of the schema of User: got %s, want %s", gvk, want)
	}
}

func properties(schema map[string]any) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	return properties
}

// TestMissingDocuments checks that errors of the OpenAPI documents are Statuses.
func TestMissingDocuments(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, path := range []string{
		"/openapi/v3/apis/apps/v1", "/openapi/v3/api/v2",
		"/openapi/v3/apis/cloud.vendor.io/v9", "/openapi/v9",
	} {
		a.get(path).want(http.StatusNotFound).failure()
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/cloud.vendor.io/v1alpha1"} {
		a.get(path, "Accept", "text/html").want(http.StatusNotAcceptable).failure()
		etag := a.get(path).want(http.StatusOK).header.Get("Etag")
		a.get(path, "If-None-Match", etag).want(http.StatusNotModified)
	}
}

func TestEveryOperationHasItsOwnName(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, path := range []string{"/openapi/v2", "/openapi/v3" + apiPath} {
		seen := map[string]string{}
		paths, _ := a.get(path).want(http.StatusOK).object()["paths"].(map[string]any)
		for path, item := range paths {
			for method, op := range item.(map[string]any) {
				id, _ := at(op, "operationId").(string)
				if id == "" {
					continue
				}
				if other, taken := seen[id]; taken {
					t.Errorf("operationId %s belongs to %s %s and to %s", id, method, path, other)
				}
				seen[id] = method + " " + path
			}
		}
		if len(seen) < 100 {
			t.Errorf("%s: got %d operations, want at least 100", path, len(seen))
		}
	}
}
