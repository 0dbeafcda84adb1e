package clusters_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"freshet/api/v1alpha1"
	"freshet/test/testserver"
)

// TestByPath uses a cluster by the path URLs of its status, which need no name resolution.
func TestByPath(t *testing.T) {
	t.Parallel()
	w := start(t, testserver.Options{})
	defer w.stop()
	acme, other := w.cluster("acme", "standard"), w.cluster("other", "dedicated")
	owner := w.token("acme", "robot")
	w.grant("acme", "robot", "org-admin")
	stranger := w.token("other", "robot")
	w.grant("other", "robot", "org-admin")
	messages := endpoint(t, acme, v1alpha1.EndpointMessages).PathURL + "/public/default/orders"
	admin := endpoint(t, acme, v1alpha1.EndpointAdmin).PathURL

	t.Run("produce and consume", func(t *testing.T) {
		w := world{t, w.Server}
		if got := w.call(http.MethodPut, admin+"/persistent/public/default/orders/subscription/me", owner,
			""); got.status/100 != 2 {
			t.Fatalf("subscribe: got %d, want 2xx\n%s", got.status, got.body)
		}
		if got := w.call(http.MethodPost, messages+"/message", owner, "hello",
			"Content-Type: application/octet-stream"); got.status != http.StatusCreated {
			t.Fatalf("produce: got %d, want 201\n%s", got.status, got.body)
		}
		got := w.call(http.MethodPost, messages+"/me/message", owner, "")
		if got.status != http.StatusOK || got.body != "hello" {
			t.Errorf("consume: got %d %q, want 200 and the message", got.status, got.body)
		}
		topics := w.call(http.MethodGet, endpoint(t, acme, v1alpha1.EndpointTopics).PathURL+"/topics", owner, "")
		if topics.status != http.StatusOK || !strings.Contains(topics.body, "orders") {
			t.Errorf("topics: got %d %s, want the topic", topics.status, topics.body)
		}
	})
	t.Run("a registry client", func(t *testing.T) {
		for _, cluster := range []struct {
			at    *v1alpha1.MessagingCluster
			token string
		}{{acme, owner}, {other, stranger}} {
			url := endpoint(t, cluster.at, v1alpha1.EndpointRegistry).PathURL
			client, err := sr.NewClient(sr.URLs(url), sr.BasicAuth("any", cluster.token))
			if err != nil {
				t.Fatal(err)
			}
			created, err := client.CreateSchema(t.Context(), "persistent://public/default/orders",
				sr.Schema{Schema: `"string"`})
			if err != nil || created.Version != 1 {
				t.Fatalf("%s: got %+v, %v, want version 1", url, created, err)
			}
			if text, err := client.SchemaTextByID(t.Context(), created.ID); err != nil || text != `"string"` {
				t.Errorf("%s: got %q, %v, want the schema", url, text, err)
			}
		}
	})
	t.Run("Python", func(t *testing.T) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("NOT TESTED: python3 is not installed (Debian: python3)")
		}
		cmd := exec.CommandContext(t.Context(), "python3", "testdata/client.py")
		cmd.Env = append(os.Environ(), "MESSAGES="+endpoint(t, acme, v1alpha1.EndpointMessages).PathURL, "ADMIN="+admin,
			"REGISTRY="+endpoint(t, acme, v1alpha1.EndpointRegistry).PathURL, "TOKEN="+owner)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("another organization",
		func(t *testing.T) { checkOtherOrganization(t, world{t, w.Server}, messages, stranger, acme) })
	t.Run("as by host", func(t *testing.T) { checkSameAsByHost(t, world{t, w.Server}, acme, owner) })
	t.Run("browsers", func(t *testing.T) {
		got := world{t, w.Server}.call(http.MethodOptions, messages+"/message", "", "",
			"Origin: https://console.example", "Access-Control-Request-Method: POST")
		if got.status/100 != 2 || got.header.Get("Access-Control-Allow-Origin") != "https://console.example" {
			t.Errorf("got %d, %v, want CORS permission", got.status, got.header)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		got := world{t, w.Server}.call(http.MethodGet, w.Ops+"/metrics", "", "")
		if strings.Contains(got.body, "/clusters/") || strings.Contains(got.body, `surface="clusters"`) {
			t.Error("metrics contain the path of a cluster, want route patterns")
		}
		if !strings.Contains(got.body, "{subscription}") {
			t.Error("metrics have no route pattern of the calls by path")
		}
	})
}

// checkOtherOrganization checks that an administrator of another organization has no access, however
// the path is encoded.
func checkOtherOrganization(t *testing.T, w world, messages, token string, cluster *v1alpha1.MessagingCluster) {
	t.Helper()
	base := strings.TrimSuffix(endpoint(t, cluster, v1alpha1.EndpointService).PathURL, "/clusters/acme/prod")
	for _, url := range []string{
		messages + "/message",
		base + "/%63lusters/%61cme/prod/admin/rest/topics/v1/public/default/orders/message",
		base + "/clusters/acme/prod/stream/subjects/x/versions",
		base + "/clusters/acme/prod/admin/v2/persistent/public/default/orders/subscription/me/skip_all",
	} {
		for _, host := range []string{"", "Host: prod.other.freshet.localhost"} {
			headers := []string{"Content-Type: application/octet-stream"}
			if host != "" {
				headers = append(headers, host)
			}
			if got := w.call(http.MethodPost, url, token, "x", headers...); got.status != http.StatusUnauthorized {
				t.Errorf("%s at %q: got %d, want 401\n%s", url, host, got.status, got.body)
			}
		}
	}
	// A path that names no organization is rejected like one that names an existing one.
	const encoded = "/clusters/other%2Fprod%2F..%2F..%2Facme/prod/subjects"
	if got := w.call(http.MethodGet, base+encoded, token, ""); got.status != http.StatusUnauthorized {
		t.Errorf("%s: got %d, want 401\n%s", encoded, got.status, got.body)
	}
	for _, path := range []string{
		"/clusters/other/prod/../../acme/prod/subjects", "/clusters//acme/prod/stream/subjects",
		"/clusters/other/prod//clusters/acme/prod/subjects", "/clusters/other/prod/clusters/acme/prod/subjects",
	} {
		if got := w.call(http.MethodGet, base+path, token, ""); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404\n%s", path, got.status, got.body)
		}
	}
}

// checkSameAsByHost checks that responses do not depend on whether the cluster is addressed by path or host.
func checkSameAsByHost(t *testing.T, w world, cluster *v1alpha1.MessagingCluster, token string) {
	t.Helper()
	prefix, host := endpoint(t, cluster, v1alpha1.EndpointService).PathURL,
		"Host: "+cluster.Spec.ServiceEndpoints[0].DNSName
	for _, path := range []string{
		"/", "", "/subjects", "/stream/subjects", "/stream/", "/stream", "/stream//subjects", "/stream/nothing",
		"//subjects", "/admin", "/admin/v2/tenants", "/admin/v2/x",
		"/admin/rest/topics/v1/x", "/admin/rest/openapi.yaml", "/rest-stream/admin/v1/topics",
		"/stream/subjects/persistent%3A%2F%2Fa%2Fb%2Fc/versions",
		"/stream/subjects/x%20y", "/stream/schemas/ids/99999?deleted=x", "/%73tream/subjects",
		"/stream/config?defaultToGlobal=true",
	} {
		for _, auth := range []string{
			"Authorization: Bearer " + token, basic(token), basic("wrong"),
			"X-Nothing: here",
		} {
			named := w.call(http.MethodGet, w.URL+path, "", "", host, auth)
			got := w.call(http.MethodGet, prefix+path, "", "", auth)
			for _, r := range []*response{&named, &got} {
				for _, header := range []string{"Date", "X-Request-Id"} {
					r.header.Del(header)
				}
			}
			a, _ := json.Marshal(named.header)
			b, _ := json.Marshal(got.header)
			if got.status != named.status || got.body != named.body || string(a) != string(b) {
				t.Errorf("GET %s, %.24s: got %d %s %.300s, by host %d %s %.300s", path, auth, got.status, b,
					got.body, named.status, a, named.body)
			}
		}
	}
}

// TestStatusFollowsTheAddress checks that the status shows the new address after the port has changed.
func TestStatusFollowsTheAddress(t *testing.T) {
	t.Parallel()
	first := start(t, testserver.Options{})
	before := endpoint(t, first.cluster("acme", "standard"), v1alpha1.EndpointRegistry)
	first.stop()
	if want := first.URL + "/clusters/acme/prod/stream"; before.PathURL != want {
		t.Errorf("got %s, want %s", before.PathURL, want)
	}
	again := start(t, testserver.Options{DataDir: first.DataDir})
	defer again.stop()
	again.until("acme", "prod", "at its new address", func(c *v1alpha1.MessagingCluster) bool {
		return endpoint(t, c, v1alpha1.EndpointRegistry).PathURL == again.URL+"/clusters/acme/prod/stream"
	})
}
