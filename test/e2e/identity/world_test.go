package identity_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"freshet/test/testserver"
)

const api = "/apis/cloud.vendor.io/v1alpha1"

// world is a test with its own organization on a server.
type world struct {
	*testing.T
	server *testserver.Server
	org    string
}

var worlds atomic.Int64

// newWorld returns an organization that no other test uses.
func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{T: t, server: server, org: fmt.Sprintf("org-%d", worlds.Add(1))}
}

// call is a request; zero values of its fields select defaults.
type call struct {
	method string // "" means GET
	path   string // relative to the organization, unless it begins with a slash
	as     string // a token; "" means the operator's, "-" none
	body   any    // an object, or a string that is sent unchanged
	kind   string // content type
	host   string
	secret bool   // the response may contain secrets
	own    string // the account whose secrets the response may contain
}

// reply is a response.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

var client = &http.Client{Timeout: 30 * time.Second}

func (w *world) do(c call) reply {
	w.Helper()
	if c.method == "" {
		c.method = http.MethodGet
	}
	path := c.path
	if !strings.HasPrefix(path, "/") {
		path = api + "/namespaces/" + w.org + "/" + path
	}
	var body io.Reader = http.NoBody
	switch b := c.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			w.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(w.Context(), c.method, w.server.URL+path, body)
	if err != nil {
		w.Fatal(err)
	}
	request.Host = c.host
	switch c.as {
	case "":
		request.Header.Set("Authorization", "Bearer "+w.server.Token)
	case "-":
	default:
		request.Header.Set("Authorization", "bearer "+c.as)
	}
	if c.kind != "" {
		request.Header.Set("Content-Type", c.kind)
	} else if c.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	what := c.method + " " + path
	if !c.secret {
		for _, leak := range leaks(text) {
			if c.own != "" && strings.HasSuffix(leak, " of "+c.own) {
				continue
			}
			w.Errorf("response to %s contains %s", what, leak)
		}
	}
	return reply{w, what, response.StatusCode, response.Header, text}
}

func (w *world) get(path string) reply { w.Helper(); return w.do(call{path: path}) }

func (w *world) post(path string, body any) reply {
	w.Helper()
	return w.do(call{method: http.MethodPost, path: path, body: body})
}

func (w *world) patch(path string, body any) reply {
	w.Helper()
	return w.do(call{method: http.MethodPatch, path: path, body: body, kind: "application/merge-patch+json"})
}

func (w *world) delete(path string) reply {
	w.Helper()
	// The response to the deletion of an account contains its secret.
	return w.do(call{method: http.MethodDelete, path: path, secret: strings.HasPrefix(path, "serviceaccounts")})
}

// want fails the test unless the status is one of statuses.
func (r reply) want(statuses ...int) reply {
	r.t.Helper()
	for _, status := range statuses {
		if r.status == status {
			return r
		}
	}
	r.t.Fatalf("%s: got %d, want %v: %.600s", r.what, r.status, statuses, r.body)
	return r
}

// at returns the value in a JSON response at a path such as status.conditions.0.type, or nil
// if there is none.
func (r reply) at(path string) any {
	r.t.Helper()
	var value any
	if err := json.Unmarshal(r.body, &value); err != nil {
		r.t.Fatalf("%s: %v in %.200s", r.what, err, r.body)
	}
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

func (r reply) text(path string) string {
	r.t.Helper()
	text, _ := r.at(path).(string)
	return text
}

// items returns the names of a list's objects.
func (r reply) items() string {
	r.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if err := json.Unmarshal(r.body, &list); err != nil {
		r.t.Fatalf("%s: %v in %.200s", r.what, err, r.body)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	return strings.Join(names, " ")
}

// conditions returns type=status(reason) of an object's conditions, in order.
func (r reply) conditions() string {
	r.t.Helper()
	list, _ := r.at("status.conditions").([]any)
	var out []string
	for _, c := range list {
		m, _ := c.(map[string]any)
		out = append(out, fmt.Sprintf("%v=%v(%v)", m["type"], m["status"], m["reason"]))
	}
	return strings.Join(out, " ")
}

// eventually repeats a request until good returns true, for at most 20 seconds.
func (w *world) eventually(path, what string, good func(reply) bool) reply {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		r := w.do(call{path: path, secret: true})
		if good(r) {
			return r
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("%s does not become %s: %d %.800s", path, what, r.status, r.body)
		}
	}
}

func (w *world) eventuallyGone(path string) {
	w.Helper()
	w.eventually(path, "gone", func(r reply) bool { return r.status == http.StatusNotFound })
}

func (w *world) eventuallyReady(path string) reply {
	w.Helper()
	return w.eventually(path, "ready", func(r reply) bool {
		return r.status == http.StatusOK && strings.Contains(r.conditions(), " Ready=True(AllConditionStatusTrue)")
	})
}

// credentials is the credentials file of a service account.
type credentials struct {
	Type         string `json:"type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientEmail  string `json:"client_email"`
	IssuerURL    string `json:"issuer_url"`
}

// account creates a service account and waits for its credentials.
func (w *world) account(name string, admin bool) credentials {
	w.Helper()
	role := ""
	if admin {
		role = "admin"
	}
	w.post("serviceaccounts", object(name, nil, "annotations.cloud.vendor.io/service-account-role", role)).want(201)
	return w.credentialsOf(name)
}

func (w *world) credentialsOf(name string) credentials {
	w.Helper()
	r := w.eventually("serviceaccounts/"+name, "provisioned", func(r reply) bool {
		return r.status == http.StatusOK && r.text("status.privateKeyData") != ""
	})
	registerSecret("the credentials file of "+name, r.text("status.privateKeyData"))
	file, err := base64.StdEncoding.DecodeString(r.text("status.privateKeyData"))
	if err != nil {
		w.Fatal(err)
	}
	var c credentials
	if err := json.Unmarshal(file, &c); err != nil {
		w.Fatal(err)
	}
	registerSecret("the client secret of "+name, c.ClientSecret)
	return c
}

// token requests an access token.
func (w *world) token(c credentials, audience string) string {
	w.Helper()
	r := w.do(call{method: http.MethodPost, path: "/oauth/token", as: "-", secret: true, body: map[string]string{
		"grant_type": "client_credentials", "client_id": c.ClientID, "client_secret": c.ClientSecret,
		"audience": audience,
	}}).want(200)
	registerSecret("an access token of "+c.ClientEmail, r.text("access_token"))
	return r.text("access_token")
}

// user creates a service account and returns a token for the resource API.
func (w *world) user(name string, admin bool) string {
	w.Helper()
	return w.token(w.account(name, admin), w.server.URL)
}

func (w *world) audience(instance string) string {
	return "urn:vendor:messaging:" + w.org + ":" + instance
}

// bind grants a role to an account, in the whole organization or in the restriction.
func (w *world) bind(name, role, account string, restriction map[string]any) reply {
	w.Helper()
	spec := map[string]any{
		"roleRef":  map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ServiceAccount", "name": account}},
	}
	if restriction != nil {
		spec["resourceNameRestriction"] = restriction
	}
	return w.post("rolebindings", object(name, spec)).want(201)
}

// in returns a restriction to an instance.
func in(instance string) map[string]any {
	return map[string]any{"common": map[string]any{"instance": instance}}
}

func (w *world) instance(name string) {
	w.Helper()
	w.post("messaginginstances", object(name, map[string]any{"availabilityMode": "zonal"})).want(201)
	w.eventuallyReady("messaginginstances/" + name)
}

// cluster creates a cluster and returns its host name.
func (w *world) cluster(name, instance string) string {
	w.Helper()
	w.post("messagingclusters", object(name, map[string]any{
		"instanceName": instance, "location": "local", "broker": map[string]any{},
	})).want(201)
	host := w.eventuallyReady("messagingclusters/" + name).text("spec.serviceEndpoints.0.dnsName")
	w.do(call{method: http.MethodPut, path: "/admin/v2/persistent/public/default/hello", host: host}).want(204)
	return host
}

// object returns the body of a resource; annotations are pairs of name and value.
func object(name string, spec map[string]any, annotations ...string) map[string]any {
	metadata := map[string]any{"name": name}
	if len(annotations) > 0 {
		list := map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			list[annotations[i]] = annotations[i+1]
		}
		metadata["annotations"] = list
	}
	if spec == nil {
		spec = map[string]any{}
	}
	return map[string]any{"metadata": metadata, "spec": spec}
}

// The following calls test credentials, one per surface.

// onResources returns the status of a read of the resource API.
func (w *world) onResources(token string) int {
	w.Helper()
	return w.do(call{path: "messaginginstances", as: token}).status
}

// onMessages returns the status of producing a message.
func (w *world) onMessages(token, host string) int {
	w.Helper()
	return w.do(call{
		method: http.MethodPost, path: "/admin/rest/topics/v1/public/default/hello/message", as: token,
		host: host, body: "hi", kind: "application/octet-stream",
	}).status
}

// onRegistry returns the status of a read of the registry of a standard cluster.
func (w *world) onRegistry(token, host string) int {
	w.Helper()
	return w.do(call{path: "/stream/subjects", as: token, host: host}).status
}
