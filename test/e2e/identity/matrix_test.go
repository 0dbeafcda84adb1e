package identity_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"freshet/internal/identity/access"
)

// operation is one call of one surface, and the permissions any one of which allows it.
// Which permissions the predefined roles have is tested in package access (testdata/roles.txt).
// This test checks that every surface requires the right permission, by making every call
// with every role.
type operation struct {
	call
	plane bool   // a call of the cluster, not of the control plane
	needs string // any of these permissions; "" for any authenticated caller, "-" for no role
	// shows is a text that the response contains only with the permission. Without the
	// permission such a call succeeds without the text.
	shows string
}

// resourceOperations returns all verbs on all kinds. Writes are dry runs, so that all roles
// work on the same state.
func resourceOperations() []operation {
	bodies := map[string]map[string]any{
		"serviceaccounts": nil,
		"serviceaccountbindings": {
			"serviceAccountName": "thing",
			"poolMemberRef":      map[string]any{"namespace": "default", "name": "local"},
		},
		"users":              {"email": "thing@example.org"},
		"messaginginstances": {},
		"messagingclusters":  {"instanceName": "thing", "location": "local", "broker": map[string]any{}},
		"apikeys":            {"serviceAccountName": "thing"},
		// Granting needs the granted permissions, so this grants a role that every granting role includes.
		"rolebindings": {"roleRef": map[string]any{"kind": "ClusterRole", "name": "account-admin"}},
		"roles":        {"permissions": []any{"cloud.roles.create"}},
	}
	var list []operation
	for kind, spec := range bodies {
		permission := func(verb string) string { return "cloud." + kind + "." + verb }
		merge, none := "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`
		list = append(
			list,
			operation{call: call{path: kind}, needs: permission("list")},
			operation{call: call{path: kind + "?watch=true"}, needs: permission("list")},
			operation{call: call{path: kind + "/thing"}, needs: permission("describe")},
			operation{call: call{path: kind + "/absent"}, needs: permission("describe")},
			operation{call: call{path: kind + "/thing/status"}, needs: permission("describe")},
			operation{
				call:  call{method: "POST", path: kind + "?dryRun=All", body: object("new", spec)},
				needs: permission("create"),
			},
			operation{
				call:  call{method: "PUT", path: kind + "/thing?dryRun=All", body: object("thing", spec)},
				needs: permission("update"),
			},
			operation{
				call:  call{method: "POST", path: kind + "/thing?dryRun=All", body: object("thing", spec)},
				needs: permission("update"),
			},
			operation{
				call:  call{method: "PATCH", path: kind + "/thing?dryRun=All", kind: merge, body: none},
				needs: permission("update"),
			},
			operation{
				call:  call{method: "PATCH", path: kind + "/absent?dryRun=All", kind: merge, body: none},
				needs: permission("update"),
			},
			operation{call: call{method: "DELETE", path: kind + "/thing?dryRun=All"}, needs: permission("delete")},
			operation{call: call{method: "DELETE", path: kind + "/absent?dryRun=All"}, needs: permission("delete")},
			operation{call: call{method: "DELETE", path: kind + "?dryRun=All"}, needs: permission("delete")},
			operation{
				call:  call{method: "PUT", path: kind + "/thing/status?dryRun=All", body: object("thing", spec)},
				needs: "-",
			},
			operation{
				call:  call{method: "PATCH", path: kind + "/thing/status?dryRun=All", kind: merge, body: none},
				needs: "-",
			},
			operation{call: call{path: api + "/" + kind}, needs: "-"},
			operation{call: call{path: api + "/namespaces/elsewhere/" + kind}, needs: "-"},
		)
	}
	for _, kind := range []string{"pools", "poolmembers"} {
		list = append(list,
			operation{call: call{path: kind}, needs: "cloud." + kind + ".list"},
			operation{call: call{path: kind + "/absent"}, needs: "cloud." + kind + ".describe"},
			operation{call: call{method: "POST", path: kind + "?dryRun=All", body: object("new", nil)}, needs: "-"},
			operation{call: call{method: "DELETE", path: kind + "?dryRun=All"}, needs: "-"})
	}
	return append(list,
		operation{call: call{path: api + "/clusterroles"}},
		operation{call: call{path: api + "/clusterroles/org-admin"}},
		operation{call: call{method: "DELETE", path: api + "/clusterroles/org-admin?dryRun=All"}, needs: "-"},
		operation{call: call{path: "/apis"}}, operation{call: call{path: "/openapi/v3"}},
		operation{call: call{method: "POST", path: rulesReviews, body: map[string]any{}}},
		operation{call: call{path: "/audit/v1alpha1/records?limit=1"}, needs: "cloud.auditrecords.list"},
		operation{call: call{path: "/audit/v1alpha1/records?organization=elsewhere"}, needs: "-"},
		operation{
			call: call{path: "serviceaccounts/thing", secret: true}, needs: "cloud.credentials.describe",
			shows: `"privateKeyData":`,
		},
	)
}

// messageOperations returns the calls of docs/spec/messages.md: messages, administration,
// topics.
func messageOperations() []operation {
	const (
		topic   = "/admin/v2/persistent/public/default/thing"
		sub     = topic + "/subscription/s"
		space   = "/admin/v2/namespaces/public/default"
		schema  = "/admin/v2/schemas/public/default/thing"
		message = "/admin/rest/topics/v1/public/default/thing/"
		reads   = "messaging.topics.describe messaging.topics.produce messaging.topics.consume"
		sees    = "messaging.topics.list " + reads
		consume = "messaging.topics.consume"
		produce = "messaging.topics.produce"
		moves   = "messaging.subscriptions.update " + consume
		schemas = "messaging.schemas.describe " + produce + " " + consume
	)
	var list []operation
	add := func(method, path, needs string, body any) {
		list = append(list, operation{call: call{method: method, path: path, body: body}, plane: true, needs: needs})
	}
	add("GET", "/admin/v2/clusters", "", nil)
	add("GET", "/admin/v2/tenants", "messaging.tenants.list messaging.tenants.describe", nil)
	add("GET", "/admin/v2/tenants/public", "messaging.tenants.describe", nil)
	add("PUT", "/admin/v2/tenants/{role}", "messaging.tenants.create", map[string]any{"allowedClusters": []any{"east"}})
	add("POST", "/admin/v2/tenants/absent", "messaging.tenants.update", map[string]any{})
	add("DELETE", "/admin/v2/tenants/absent", "messaging.tenants.delete", nil)
	add("GET", "/admin/v2/namespaces/public", "messaging.namespaces.list messaging.namespaces.describe", nil)
	add("GET", space, "messaging.namespaces.describe", nil)
	add("PUT", "/admin/v2/namespaces/public/{role}", "messaging.namespaces.create", map[string]any{})
	add("DELETE", "/admin/v2/namespaces/public/absent", "messaging.namespaces.delete", nil)
	add("GET", space+"/topics", sees, nil)
	add("GET", space+"/permissions", "messaging.namespaces.describe", nil)
	add("POST", "/admin/v2/namespaces/public/absent/permissions/x", "messaging.namespaces.manage", []any{"produce"})
	add("DELETE", "/admin/v2/namespaces/public/absent/permissions/x", "messaging.namespaces.manage", nil)
	add("GET", space+"/properties", "messaging.namespaces.describe", nil)
	add("PUT", space+"/properties", "messaging.namespaces.update", map[string]any{})
	add("GET", space+"/retention", "messaging.namespaces.describe", nil)
	add("POST", "/admin/v2/namespaces/public/absent/retention", "messaging.namespaces.update", map[string]any{})
	add("DELETE", "/admin/v2/namespaces/public/absent/retention", "messaging.namespaces.update", nil)
	add("GET", "/admin/v2/persistent/public/default", sees, nil)
	add("GET", "/admin/v2/persistent/public/default/partitioned", sees, nil)
	add("PUT", "/admin/v2/persistent/public/default/{role}", "messaging.topics.create", nil)
	add("DELETE", "/admin/v2/persistent/public/default/absent", "messaging.topics.delete", nil)
	add("PUT", "/admin/v2/persistent/public/default/p-{role}/partitions", "messaging.topics.create", 2)
	add("POST", "/admin/v2/persistent/public/default/absent/partitions", "messaging.topics.update", 3)
	add("GET", topic+"/partitions", reads, nil)
	add("DELETE", "/admin/v2/persistent/public/default/absent/partitions", "messaging.topics.delete", nil)
	add("GET", topic+"/properties", reads, nil)
	add("PUT", topic+"/properties", "messaging.topics.update", map[string]any{})
	add("GET", topic+"/stats", reads, nil)
	add("GET", topic+"/internalStats", reads, nil)
	add("GET", topic+"/lastMessageId", reads, nil)
	add("GET", topic+"/ledger/0/entry/0", consume, nil)
	add("POST", "/admin/v2/persistent/public/default/absent/terminate", "messaging.topics.manage", nil)
	add("GET", topic+"/permissions", "messaging.topics.describe", nil)
	add("POST", "/admin/v2/persistent/public/default/absent/permissions/x", "messaging.topics.manage", []any{"produce"})
	add("GET", topic+"/retention", "messaging.topics.describe", nil)
	add("POST", "/admin/v2/persistent/public/default/absent/retention", "messaging.topics.update", map[string]any{})
	add("PUT", topic+"/subscription/{role}", "messaging.subscriptions.create "+consume, nil)
	add("DELETE", topic+"/subscription/absent", "messaging.subscriptions.delete "+consume, nil)
	add("GET", topic+"/subscriptions", "messaging.subscriptions.list "+consume, nil)
	add("POST", sub+"/skip_all", moves, nil)
	add("POST", sub+"/resetcursor/0", moves, nil)
	add("GET", sub+"/properties", "messaging.subscriptions.describe "+consume, nil)
	add("GET", sub+"/position/1", consume, nil)
	add("GET", sub+"/position/1?filter=true", consume, nil)
	add("POST", sub+"/replay_dead_letters", "messaging.subscriptions.describe "+consume, map[string]any{})
	add("POST", topic+"/all_subscription/expireMessages/1000", "messaging.subscriptions.update", nil)
	add("GET", schema+"/schema", schemas, nil)
	add("GET", schema+"/schemas", schemas, nil)
	add("POST", "/admin/v2/schemas/public/default/absent/schema", "messaging.topics.create", map[string]any{})
	add("DELETE", "/admin/v2/schemas/public/default/absent/schema", "messaging.schemas.delete", nil)
	add("POST", schema+"/compatibility", "messaging.schemas.describe messaging.schemas.create", map[string]any{})
	add("POST", "/rest-stream/admin/v1/topics", "messaging.topics.create",
		map[string]any{"topic_name": "persistent://public/default/s-{role}"})
	add("POST", message+"message", produce, "hi")
	add("POST", message+"messages", produce, map[string]any{})
	add("POST", message+"s/message", consume, map[string]any{"timeoutMillis": 1})
	add("PUT", message+"s/message", consume, "x")
	add("POST", message+"s/messages", consume, map[string]any{"timeoutMillis": 1})
	add("PUT", message+"s/messages", consume, map[string]any{})
	add("GET", message+"s/messages", consume, nil)
	add("GET", message+"tail", consume, nil)
	add("GET", message+"tail?filter=true", consume, nil)
	add("GET", message+"search?filter=true", consume, nil)
	add("POST", message+"tail/ticket", consume, nil)
	add("POST", message+"s/messages/ticket", consume, nil)
	add("POST", message+"s/message/nack", consume, map[string]any{})
	add("POST", message+"s/message/extend", consume, map[string]any{})
	add("PUT", message+"s/message/cumulative", consume, map[string]any{})
	return append(list, operation{
		call: call{path: "/rest-stream/admin/v1/topics"}, plane: true, needs: sees,
		shows: "thing",
	})
}

// registryOperations returns the calls of docs/spec/registry.md.
func registryOperations() []operation {
	const (
		describe = "schema.subjects.describe"
		subject  = "/stream/subjects/thing"
	)
	schema := map[string]any{"schema": `"int"`}
	var list []operation
	add := func(method, path, needs string, body any) {
		list = append(list, operation{call: call{method: method, path: path, body: body}, plane: true, needs: needs})
	}
	add("GET", "/stream/schemas/types", "", nil)
	add("GET", "/stream/schemas/ids/{id}", describe, nil)
	add("GET", "/stream/schemas/ids/{id}/schema", describe, nil)
	add("POST", subject, describe, schema)
	add("DELETE", "/stream/subjects/absent", "schema.subjects.delete", nil)
	add("GET", subject+"/versions", describe, nil)
	add("POST", "/stream/subjects/{role}/versions", "schema.subjects.create", schema)
	add("GET", subject+"/versions/1", describe, nil)
	add("GET", subject+"/versions/1/schema", describe, nil)
	add("GET", subject+"/versions/1/referencedby", describe, nil)
	add("DELETE", "/stream/subjects/absent/versions/1", "schema.subjects.delete", nil)
	add("POST", "/stream/compatibility/subjects/thing/versions", describe, schema)
	add("POST", "/stream/compatibility/subjects/thing/versions/1", describe, schema)
	add("GET", "/stream/config", "", nil)
	add("GET", "/stream/config/thing", describe, nil)
	add("PUT", "/stream/config/{role}", "schema.subjects.update", map[string]any{"compatibility": "BACKWARD"})
	add("GET", "/stream/mode", "", nil)
	add("GET", "/stream/registry/v1alpha1/openapi.yaml", "", nil)
	add("PUT", "/stream/mode", "schema.mode.update", map[string]any{"mode": "READWRITE"})
	add("GET", "/stream/registry/v1alpha1/export", describe, nil)
	return append(list,
		operation{call: call{path: "/stream/subjects"}, plane: true, needs: "schema.subjects.list", shows: "thing"},
		operation{call: call{path: "/stream/schemas/ids/{id}/subjects"}, plane: true, needs: describe, shows: "thing"},
		operation{call: call{path: "/stream/schemas/ids/{id}/versions"}, plane: true, needs: describe, shows: "thing"})
}

// TestEveryRoleAndEveryOperation makes every call with every role.
func TestEveryRoleAndEveryOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("thing", false)
	w.instance("thing")
	host := w.cluster("thing", "thing")
	w.post("serviceaccountbindings",
		object("thing", map[string]any{
			"serviceAccountName": "thing",
			"poolMemberRef":      map[string]any{"namespace": "default", "name": "local"},
		})).want(201)
	w.post("users", object("thing", map[string]any{"email": "thing@example.org"})).want(201)
	w.plainKey("thing", "thing", "")
	w.bind("thing", "account-admin", "thing-nobody", nil)
	w.post("roles", role("thing", "cloud.roles.create")).want(201)
	w.do(call{method: "PUT", path: "/admin/v2/persistent/public/default/thing", host: host}).want(204)
	w.do(call{method: "PUT", path: "/admin/v2/persistent/public/default/thing/subscription/s", host: host}).want(204)
	id := w.do(call{
		method: "POST", path: "/stream/subjects/thing/versions", host: host,
		body: map[string]any{"schema": `"int"`},
	}).want(200).at("id")
	// Deleting the instance, which has a cluster, is allowed by its permission and then
	// rejected with 409 (docs/spec/resources.md#r8).
	operations := append(append(resourceOperations(), messageOperations()...), registryOperations()...)
	t.Logf("%d roles, %d operations", len(access.Roles())+1, len(operations))
	for _, role := range append([]*access.Role{{Name: "none"}}, access.Roles()...) {
		t.Run(role.Name, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, server: w.server, org: w.org}
			c := w.account(role.Name, false)
			if role.Name != "none" {
				w.bind(role.Name, role.Name, role.Name, nil)
			}
			control, data := w.token(c, w.server.URL), w.token(c, w.audience("thing"))
			replacer := strings.NewReplacer("{role}", role.Name, "{id}", fmt.Sprint(id))
			for _, op := range operations {
				op.as, op.own = control, role.Name
				op.secret = op.secret || slices.Contains(role.Permissions(), access.ReadCredentials)
				if op.plane {
					op.as, op.host = data, host
				}
				op.path = replacer.Replace(op.path)
				try(w, op, allows(role, op.needs))
			}
		})
	}
}

func allows(role *access.Role, needs string) bool {
	if needs == "" {
		return true
	}
	for permission := range strings.FieldsSeq(needs) {
		if permission != "-" && !access.Permission(permission).Known() {
			panic("unknown permission " + permission)
		}
		if slices.Contains(role.Permissions(), access.Permission(permission)) {
			return true
		}
	}
	return false
}

// try makes one call and checks whether it was authorized. Other errors of the call do not
// matter here.
func try(w *world, op operation, allowed bool) {
	w.Helper()
	if isEndless(op.call) {
		// The status is returned immediately, the body does not end.
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		tryStatus(ctx, w, op, allowed)
		return
	}
	r := w.do(op.call)
	denied := r.status == http.StatusUnauthorized || r.status == http.StatusForbidden
	switch {
	case r.status >= 500:
		w.Errorf("%s: %d %s", r.what, r.status, r.body)
	case op.shows != "":
		if shown := strings.Contains(string(r.body), op.shows); shown != allowed {
			w.Errorf("%s: %d shows %s: %v, want %v", r.what, r.status, op.shows, shown, allowed)
		}
	case denied == allowed:
		w.Errorf("%s (%s): got %d, want allowed: %v: %.300s", r.what, op.needs, r.status, allowed, r.body)
	}
}

func isEndless(c call) bool {
	return strings.Contains(c.path, "watch=true") || strings.HasSuffix(c.path, "/tail") ||
		strings.Contains(c.path, "/tail?") || (c.method == http.MethodGet && strings.HasSuffix(c.path, "/s/messages"))
}

func tryStatus(ctx context.Context, w *world, op operation, allowed bool) {
	w.Helper()
	path := op.path
	if !strings.HasPrefix(path, "/") {
		path = api + "/namespaces/" + w.org + "/" + path
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+path, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	request.Host = op.host
	request.Header.Set("Authorization", "Bearer "+op.as)
	response, err := client.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	_ = response.Body.Close() // only the status is used
	if got := response.StatusCode == http.StatusOK; got != allowed {
		w.Errorf("GET %s (%s): got %d, want allowed: %v", path, op.needs, response.StatusCode, allowed)
	}
}
