// Package clusters_test calls clusters of the real binary at both their addresses: by name
// over TLS, with certificates that the server issues on demand, and by path, which needs no
// DNS.
package clusters_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/api/v1alpha1"
	"freshet/test/testserver"
)

const api = "/apis/cloud.vendor.io/v1alpha1/namespaces/"

// world is a test with its server.
type world struct {
	*testing.T
	*testserver.Server
}

func start(t *testing.T, opts testserver.Options) world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(ctx, binary, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return world{t, server}
}

func (w world) stop() {
	w.Helper()
	if err := w.Stop(30 * time.Second); err != nil {
		w.Error(err)
	}
}

// response is a response.
type response struct {
	status int
	header http.Header
	body   string
}

// call makes a request with a token, and with headers in the form "Name: value".
func (w world) call(method, url, token, body string, headers ...string) response {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response{res.StatusCode, res.Header, string(text)}
}

// create creates a resource.
func (w world) create(organization, resource string, object map[string]any) string {
	w.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		w.Fatal(err)
	}
	got := w.call(http.MethodPost, w.URL+api+organization+"/"+resource, w.Token, string(text),
		"Content-Type: application/json")
	if got.status != http.StatusCreated {
		w.Fatalf("create %s in %s: got %d, want 201\n%s", resource, organization, got.status, got.body)
	}
	return got.body
}

type fields = map[string]any

// cluster creates an instance of a type and a cluster prod in it, and waits until it is ready.
func (w world) cluster(organization, instanceType string) *v1alpha1.MessagingCluster {
	w.Helper()
	w.create(organization, "messaginginstances",
		fields{"metadata": fields{"name": "main"}, "spec": fields{"type": instanceType}})
	w.create(organization, "messagingclusters", fields{
		"metadata": fields{"name": "prod"},
		"spec":     fields{"instanceName": "main", "location": "local", "broker": fields{}},
	})
	return w.until(organization, "prod", "ready", ready)
}

// until watches a cluster until the condition is true.
func (w world) until(organization, name, what string,
	good func(*v1alpha1.MessagingCluster) bool,
) *v1alpha1.MessagingCluster {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		w.URL+api+organization+"/messagingclusters?watch=true&fieldSelector=metadata.name%3D"+name, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.Token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // ends the watch
	for events := json.NewDecoder(res.Body); ; {
		var event struct{ Object v1alpha1.MessagingCluster }
		if err := events.Decode(&event); err != nil {
			w.Fatalf("waiting for cluster %s/%s to be %s: %v\n%s", organization, name, what, err, w.Log())
		}
		if good(&event.Object) {
			return &event.Object
		}
	}
}

func ready(cluster *v1alpha1.MessagingCluster) bool {
	return slices.ContainsFunc(cluster.Status.Conditions, func(c v1alpha1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.Status == v1alpha1.ConditionTrue &&
			c.ObservedGeneration == cluster.Generation
	})
}

// token creates a service account and an API key for an instance, and returns the token.
func (w world) token(organization, account string) string {
	w.Helper()
	w.create(organization, "serviceaccounts", fields{"metadata": fields{"name": account}})
	body := w.create(organization, "apikeys", fields{
		"metadata": fields{"name": account}, "spec": fields{"serviceAccountName": account, "instanceName": "main"},
	})
	var key struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &key); err != nil || key.Status.Token == "" {
		w.Fatalf("key has no token: %v\n%s", err, body)
	}
	return key.Status.Token
}

// grant grants an account a role in its organization.
func (w world) grant(organization, account, role string) {
	w.Helper()
	w.create(organization, "rolebindings", fields{
		"metadata": fields{"name": account},
		"spec": fields{
			"subjects": []fields{{"kind": "ServiceAccount", "name": account, "apiGroup": "cloud.vendor.io"}},
			"roleRef":  fields{"kind": "ClusterRole", "name": role, "apiGroup": "cloud.vendor.io"},
		},
	})
}

func endpoint(t *testing.T, cluster *v1alpha1.MessagingCluster, kind string) v1alpha1.ClusterEndpoint {
	t.Helper()
	for _, e := range cluster.Status.Endpoints {
		if e.Type == kind {
			return e
		}
	}
	t.Fatalf("got endpoints %+v, want one of type %s", cluster.Status.Endpoints, kind)
	return v1alpha1.ClusterEndpoint{}
}

func authorityOf(t *testing.T, w world) (path string, pem []byte) {
	t.Helper()
	path = filepath.Join(w.DataDir, "tls", "ca.crt")
	pem, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, bytes.TrimSpace(pem)
}

func basic(token string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("any:"+token))
}
