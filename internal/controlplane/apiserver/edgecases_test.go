package apiserver_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/controlplane/kinds/kindstest"
)

// TestImpersonationIsRefused checks every form of the headers, for every caller and on every path.
func TestImpersonationIsRefused(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, header := range []string{
		"Impersonate-User: admin@default.test", "impersonate-user: system:serviceaccount:acme:x",
		"IMPERSONATE-GROUP: system:masters",
		"Impersonate-Uid: 1", "Impersonate-Extra-Scopes: all", "impersonate-extra-a%2fb: c", "Impersonate-: x",
		"Impersonate-User:",
	} {
		for _, token := range []string{kindstest.AdminToken, kindstest.AcmeToken} {
			for _, line := range []string{"GET " + acme + "/users", "POST " + acme + "/users", "GET /healthz"} {
				if got := a.raw(line, "Authorization: bearer "+token, header); got != http.StatusForbidden {
					t.Errorf("%s with %q: got %d, want 403", line, header, got)
				}
			}
		}
	}
	a.get("users", "Impersonate-User", "x").want(http.StatusForbidden).failure()
	a.get("users", "X-Impersonate-User", "x").want(http.StatusOK) // a header without meaning
}

// raw sends header lines unchanged and returns the status code.
func (a *api) raw(line string, headers ...string) int {
	a.Helper()
	conn, err := (&net.Dialer{}).DialContext(a.Context(), "tcp", strings.TrimPrefix(a.server.URL, "http://"))
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Close()
	body := find("User").object("raw")
	_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n%s\r\n\r\n%s",
		line, len(body), strings.Join(headers, "\r\n"), body)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		a.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestNames(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			bad := []string{"..", ".", "a/b", "50%", strings.Repeat("x", 254)}
			if k.kind != "User" {
				bad = append(bad, "A_1", "Upper", "-a", "a-", "a b", "ü", "a\x00")
			}
			for _, name := range bad {
				if got := a.post(k.plural, k.object(name)).want(http.StatusUnprocessableEntity).causes(); !slices.Equal(
					got, []string{"metadata.name"}) {
					t.Errorf("name %q: got causes %q, want metadata.name", name, got)
				}
			}
			if k.kind == "MessagingCluster" { // the name is a label of the host name
				a.post(k.plural, k.object("a.b-c.0")).want(http.StatusUnprocessableEntity)
				a.post(k.plural, k.object(strings.Repeat("x", 64))).want(http.StatusUnprocessableEntity)
				a.post(k.plural, k.object(strings.Repeat("x", 63))).want(http.StatusCreated)
			} else {
				a.post(k.plural, k.object("a.b-c.0")).want(http.StatusCreated)
				a.post(k.plural, k.object(strings.Repeat("x", 253))).want(http.StatusCreated)
			}
			created := a.post(k.plural, strings.Replace(k.object(""), `"name":""`, `"generateName":"made-"`, 1)).want(
				http.StatusCreated)
			if name, _ := created.at("metadata.name").(string); !strings.HasPrefix(name, "made-") || len(name) < 9 {
				t.Errorf("name generated from made-: got %q", name)
			}
			nameless := a.post(k.plural, k.object(""))
			if k.kind == "MessagingCluster" {
				if name, _ := nameless.want(http.StatusCreated).at("metadata.name").(string); name == "" {
					t.Errorf("cluster without a name: want a generated name: %s", nameless.body)
				}
				return
			}
			if got := nameless.want(http.StatusUnprocessableEntity).causes(); !slices.Equal(got,
				[]string{"metadata.name"}) {
				t.Errorf("empty name: got causes %q, want metadata.name", got)
			}
		})
	}
}

func TestUsersMayBeNamedByTheirAddress(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	for _, name := range []string{"ironman@matrix.local", "Ada+Lists@Example.com", "a_b@c"} {
		a.post("users", k.object(name)).want(http.StatusCreated).has("metadata.name", name)
		a.get("users/"+name).want(http.StatusOK).has("metadata.name", name)
		a.get("users/"+strings.ReplaceAll(name, "@", "%40")).want(http.StatusOK).has("metadata.name", name)
		a.get("users?fieldSelector=metadata.name%3D"+strings.ReplaceAll(name, "+", "%2B")).want(http.StatusOK).has(
			"items.0.metadata.name", name)
		a.patch("users/"+name, mergePatch, k.change).want(http.StatusOK).has("spec.email", "eve@example.com")
		a.delete("users/" + name).want(http.StatusOK)
	}
}

func TestOrganizations(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	for _, namespace := range []string{"A_B", "a.b", "-", strings.Repeat("a", 64)} {
		if got := a.post(apiPath+"/namespaces/"+namespace+"/users",
			k.object("x")).want(http.StatusUnprocessableEntity).causes(); !slices.Equal(got,
			[]string{"metadata.namespace"}) {
			t.Errorf("organization %q: got causes %q, want metadata.namespace", namespace, got)
		}
	}
	a.post("users", k.object("x", `"namespace":"other"`)).want(http.StatusBadRequest).failure()
	a.post("users", k.object("x", `"namespace":"acme"`)).want(http.StatusCreated)

	// The first object creates its organization.
	a.post(apiPath+"/namespaces/brand-new/users", k.object("first")).want(http.StatusCreated)
	if got := a.get(apiPath + "/namespaces/never-used/users").names(); len(got) != 0 {
		t.Errorf("users of an unused organization: got %q, want none", got)
	}
}

// TestEmptyNamespace checks that only the system administrator can access objects across
// organizations, on the deprecated watch paths too.
func TestEmptyNamespace(t *testing.T) {
	t.Parallel()
	a := start(t)
	boss := a.as(kindstest.AcmeToken)
	for _, k := range kinds {
		a.post(k.plural, k.object("mine")).want(http.StatusCreated)
		a.post(apiPath+"/namespaces/other/"+k.plural, k.object("theirs")).want(http.StatusCreated)
		if got, want := a.get(apiPath+"/"+k.plural).names(), []string{"mine", "theirs"}; !slices.Equal(got, want) {
			t.Errorf("all %s: got %q, want %q", k.plural, got, want)
		}
		for _, path := range []string{
			apiPath + "/" + k.plural, apiPath + "/" + k.plural + "?watch=true", apiPath + "/watch/" + k.plural,
			apiPath + "/namespaces/other/" + k.plural, apiPath + "/watch/namespaces/other/" + k.plural,
			apiPath + "/watch/namespaces/other/" + k.plural + "/theirs",
			apiPath + "/namespaces/other/" + k.plural + "/theirs",
		} {
			boss.get(path).want(http.StatusForbidden).failure()
		}
		a.post(apiPath+"/"+k.plural, k.object("nowhere")).want(http.StatusMethodNotAllowed)
		a.delete(apiPath+"/"+k.plural).want(http.StatusMethodNotAllowed, http.StatusForbidden)
		if code := boss.get(apiPath + "/namespaces//" + k.plural).code; code == http.StatusOK {
			t.Errorf("%s with an empty organization: got 200, want an error", k.plural)
		}
		if got, want := boss.get(k.plural).names(), []string{"mine"}; !slices.Equal(got, want) {
			t.Errorf("objects for an organization's administrator: got %q, want %q", got, want)
		}
	}
}

func TestPublicPaths(t *testing.T) {
	t.Parallel()
	a := start(t)
	kindstest.Eventually(a, "the start hooks are done", func() bool { return a.get("/readyz").code == http.StatusOK })
	tests := map[string]struct{ anonymous, unknown, boss int }{
		"/healthz":              {200, 200, 200},
		"/healthz/etcd":         {200, 200, 200},
		"/livez":                {200, 200, 200},
		"/livez/ping":           {200, 200, 200},
		"/readyz":               {200, 200, 200},
		"/readyz?verbose":       {200, 200, 200},
		"/version":              {200, 200, 200},
		"/version/":             {401, 401, 403},
		"/versions":             {401, 401, 403},
		"/healthzz":             {401, 401, 403},
		"/metrics":              {401, 401, 403},
		"/metrics/slis":         {401, 401, 403},
		"/debug/pprof/":         {401, 401, 403},
		"/debug/flags/v":        {401, 401, 403},
		"/logs":                 {401, 401, 403},
		"/statusz":              {401, 401, 403},
		"/flagz":                {401, 401, 403},
		"/":                     {401, 401, 403},
		"/apis":                 {401, 401, 200},
		"/apis/cloud.vendor.io": {401, 401, 200},
		apiPath:                 {401, 401, 200},
		"/openapi/v2":           {401, 401, 200},
		"/openapi/v3":           {401, 401, 200},
		acme + "/users":         {401, 401, 200},
		apiPath + "/namespaces": {401, 401, 403},
		"/api/v1/namespaces":    {401, 401, 200},
	}
	for path, want := range tests {
		for token, code := range map[string]int{
			"": want.anonymous, "stranger": want.unknown,
			kindstest.AcmeToken: want.boss,
		} {
			res := a.as(token).get(path)
			if code == http.StatusForbidden && res.code == http.StatusNotFound {
				continue // also correct for an authenticated caller
			}
			if res.code != code {
				t.Errorf("%s with token %q: got %d, want %d", path, token, res.code, code)
			}
			if code == http.StatusUnauthorized && res.code == code {
				res.failure()
			}
		}
	}
	for _, path := range []string{
		"/healthz/../apis", "/version/../../apis" + acme + "/users", "//apis",
		"/livez/%2e%2e/apis", "/healthz%2f..%2fapis",
	} {
		if res := a.as("").get(path); res.code == http.StatusOK {
			t.Errorf("%s without a token: got %d: %s, want an error", path, res.code, res.body)
		}
	}
}

// TestPathsThatAreNotServed checks that authenticated callers get 404 or 405 with a Status for things that
// are not served, and that others get 401.
func TestPathsThatAreNotServed(t *testing.T) {
	t.Parallel()
	a := start(t)
	users := acme + "/users"
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	tests := []struct {
		method, path string
		want         int
	}{
		{"GET", "/api/v2", 404},
		{"GET", "/api/v1/namespaces/absent", 404},
		{"GET", "/api/v1/namespaces/acme/pods", 404},
		{"POST", "/api/v1/namespaces/acme/events", 405},
		{"PUT", "/api/v1/namespaces/acme", 405},
		{"GET", "/apis/apps", 404},
		{"GET", "/apis/apps/v1/namespaces/acme/deployments", 404},
		{"POST", "/apis/apps/v1/namespaces/acme/deployments", 404},
		{"DELETE", "/apis/apps/v1/namespaces/acme/deployments/x", 404},
		{"GET", "/apis/cloud.vendor.io/v9/namespaces/acme/users", 404},
		{"GET", "/openapi", 404},
		{"OPTIONS", users, 405},
		{"TRACE", users, 405},
		{"BREW", users + "/ann", 405},
		{"PUT", users, 405},
		{"DELETE", users + "/ann/status", 405},
		{"POST", users + "/ann/status", 405},
	}
	for _, tc := range tests {
		got := a.call(tc.method, tc.path, nil).want(tc.want).failure()
		if reason := map[int]metav1.StatusReason{
			403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
			405: metav1.StatusReasonMethodNotAllowed,
		}[tc.want]; got.Reason != reason {
			t.Errorf("reason of %s %s: got %q, want %q", tc.method, tc.path, got.Reason, reason)
		}
		a.as("").call(tc.method, tc.path, nil).want(http.StatusUnauthorized).failure()
	}
	a.get("users/ann").want(http.StatusOK)
}

func TestGeneration(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			item := k.plural + "/g"
			written := "status.conditions.0.type"
			if k.kind == "APIKey" {
				written = "status.conditions.3.type" // after its own conditions
			}
			a.post(k.plural, k.object("g", `"generation":7`)).want(http.StatusCreated).has("metadata.generation", "1")
			a.patch(item, mergePatch, `{"metadata":{"labels":{"a":"b"},"generation":9}}`).want(http.StatusOK).has(
				"metadata.generation", "1")
			a.patch(item+"/status", mergePatch,
				`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Test","message":"",`+
					`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`).
				want(http.StatusOK).has("metadata.generation", "1", written, "Ready")
			a.put(item, k.object("g")).want(http.StatusOK).has("metadata.generation", "1")
			if k.change == "" {
				return
			}
			a.patch(item, mergePatch, k.change).want(http.StatusOK).has("metadata.generation", "2")
			a.patch(item, mergePatch, k.change).want(http.StatusOK).has("metadata.generation", "2")
		})
	}
}

func TestCreateWithAResourceVersion(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		for _, version := range []string{"1", "0", "abc", "99999999999"} {
			got := a.post(k.plural, k.object("rv", `"resourceVersion":"`+version+`"`)).want(
				http.StatusUnprocessableEntity).causes()
			if !slices.Equal(got, []string{"metadata.resourceVersion"}) {
				t.Errorf("%s with resourceVersion %s: got causes %q, want metadata.resourceVersion", k.kind,
					version, got)
			}
		}
		a.patch(k.plural+"/rv?fieldManager=me", applyPatch, k.object("rv", `"resourceVersion":"1"`)).want(
			http.StatusUnprocessableEntity, http.StatusConflict)
		a.get(k.plural + "/rv").want(http.StatusNotFound)
	}
}

func TestUnparsableResourceVersion(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		a.post(k.plural, k.object("o")).want(http.StatusCreated)
		for _, version := range []string{"abc", "-1", "1.5", "99999999999999999999", "1e3", "0x10", "١"} {
			q := "resourceVersion=" + version
			a.get(k.plural + "/o?" + q).want(http.StatusBadRequest).failure()
			a.get(k.plural + "?" + q).want(http.StatusBadRequest).failure()
			a.get(k.plural + "?watch=true&" + q).want(http.StatusBadRequest).failure()
			a.get(apiPath + "/watch/namespaces/acme/" + k.plural + "?" + q).want(http.StatusBadRequest).failure()
			a.delete(k.plural + "?" + q).want(http.StatusBadRequest).failure()
			stale := `"resourceVersion":"` + version + `"`
			a.put(k.plural+"/o", k.object("o", stale)).want(http.StatusBadRequest).failure()
			a.post(k.plural+"/o", k.object("o", stale)).want(http.StatusBadRequest).failure()
			a.put(k.plural+"/o/status", k.object("o", stale)).want(http.StatusBadRequest).failure()
			a.patch(k.plural+"/o", mergePatch, `{"metadata":{`+stale+`}}`).want(http.StatusBadRequest).failure()
			a.patch(k.plural+"/o", strategic, `{"metadata":{`+stale+`}}`).want(http.StatusBadRequest).failure()
			a.patch(k.plural+"/o", jsonPatch, `[{"op":"add","path":"/metadata/resourceVersion","value":"`+version+
				`"}]`).want(http.StatusBadRequest).failure()
			a.patch(k.plural+"/o?fieldManager=me", applyPatch,
				k.object("o", stale)).want(http.StatusBadRequest).failure()
			a.call(http.MethodDelete, k.plural+"/o", `{"preconditions":{`+stale+
				`}}`).want(http.StatusBadRequest).failure()
		}
		a.get(k.plural + "/o").want(http.StatusOK)
	}
}
