package identity_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// trailRecord is the part of an audit record that the tests check.
type trailRecord struct {
	Surface, Principal, Organization, KeyID, Verb, Resource, Scope, Permission string
	Decision, By, Role, Binding, Source, RequestID                             string
	Status                                                                     int
}

// trail returns the organization's audit records, oldest first.
func (w *world) trail(query url.Values) []trailRecord {
	w.Helper()
	query.Set("organization", w.org)
	r := w.do(call{path: "/audit/v1alpha1/records?" + query.Encode()}).want(200)
	var page struct{ Records []trailRecord }
	if err := json.Unmarshal(r.body, &page); err != nil {
		w.Fatal(err)
	}
	for i, j := 0, len(page.Records)-1; i < j; i, j = i+1, j-1 {
		page.Records[i], page.Records[j] = page.Records[j], page.Records[i]
	}
	return page.Records
}

func TestAuditTrail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.account("robot", false)
	robot := w.token(c, w.server.URL)
	w.bind("hr", "account-admin", "robot", nil)
	w.instance("prod")
	host := w.cluster("east", "prod")
	dataToken := w.token(c, w.audience("prod"))
	principal := "robot@" + w.org + "." + strings.TrimPrefix(w.server.URL, "http://")

	w.do(call{
		method: "POST", path: "users", as: robot,
		body: object("ann", map[string]any{"email": "ann@example.org"}),
	}).want(201)
	w.do(call{
		method: "POST", path: "users", as: robot,
		body: object("ann", map[string]any{"email": "ann@example.org"}),
	}).want(409)
	w.do(call{
		method: "POST", path: "users?dryRun=All", as: robot,
		body: object("dry", map[string]any{"email": "ann@example.org"}),
	}).want(201)
	w.do(call{path: "users", as: robot}).want(200)
	w.do(call{path: "users/ann", as: robot}).want(200)
	w.do(call{
		method: "POST", path: "users/ann", as: robot,
		body: object("ann", map[string]any{"email": "a@example.org"}),
	}).want(200)
	w.do(call{path: "messaginginstances", as: robot}).want(403)
	w.do(call{method: "DELETE", path: "messagingclusters/east", as: robot}).want(403)
	w.do(call{method: "DELETE", path: "users", as: robot}).want(200)
	w.do(call{
		method: "PUT", path: "/admin/v2/tenants/mine", as: dataToken, host: host,
		body: map[string]any{},
	}).want(403)
	w.do(call{
		method: "PUT", path: "/stream/config/s", as: dataToken, host: host,
		body: map[string]any{"compatibility": "NONE"},
	}).want(403)
	w.do(call{method: "PUT", path: "/stream/config/s", host: host, body: map[string]any{"compatibility": "NONE"}})
	w.do(call{path: "users", as: "not-a-token"}).want(401)

	type line struct{ surface, verb, resource, decision, scope, role string }
	has := func(what string, want line, status int) {
		t.Helper()
		for _, r := range w.trail(url.Values{"limit": {"1000"}}) {
			if r.Surface == want.surface && r.Verb == want.verb && r.Resource == want.resource &&
				r.Decision == want.decision &&
				r.Status == status && r.Scope == want.scope && r.Role == want.role {
				if r.Source == "" || r.RequestID == "" || (r.Principal == "" && status != 401) {
					t.Errorf("%s: %+v", what, r)
				}
				return
			}
		}
		t.Errorf("%s is not in the audit trail: %+v", what, want)
	}
	in := "organization/" + w.org
	has("a create", line{"resources", "create", "users", "allow", in + "/user/ann", "account-admin"}, 201)
	has("a create that failed", line{"resources", "create", "users", "allow", in + "/user/ann", "account-admin"}, 409)
	has("a replace", line{"resources", "update", "users", "allow", in + "/user/ann", "account-admin"}, 200)
	has("a denied list", line{"resources", "list", "messaginginstances", "deny", in, ""}, 403)
	has("a denied delete", line{"resources", "delete", "messagingclusters", "deny", in + "/cluster/east", ""}, 403)
	has("a deletecollection", line{"resources", "deletecollection", "users", "allow", in, "account-admin"}, 200)
	has("a denied call of administration",
		line{"messages", "create", "tenants", "deny", in + "/instance/prod/cluster/east/tenant/mine", ""}, 403)
	has("a stranger", line{"resources", "list", "users", "deny", in, ""}, 401)
	denied := w.trail(url.Values{"surface": {"registry"}, "decision": {"deny"}})
	if len(denied) != 1 || denied[0].Principal != principal || denied[0].Permission != "schema.subjects.update" {
		t.Errorf("denied in the registry: %+v, want 1, %v, schema.subjects.update", denied, principal)
	}
	tokens := w.trail(url.Values{"surface": {"token"}})
	if len(tokens) != 2 || tokens[0].Principal != principal {
		t.Errorf("tokens: %+v, want 2, %v", tokens, principal)
	}
	for _, r := range w.trail(url.Values{"limit": {"1000"}}) {
		if r.Verb == "get" || r.Verb == "watch" || (r.Verb == "list" && r.Decision == "allow") ||
			strings.Contains(r.Scope, "/dry") {
			t.Errorf("read or dry run is in the audit trail: %+v", r)
		}
	}
	// Reading the audit trail needs a permission.
	w.do(call{path: "/audit/v1alpha1/records", as: robot}).want(403)
	w.do(call{path: "/audit/v1alpha1/records", as: w.user("boss", true)}).want(200)
}
