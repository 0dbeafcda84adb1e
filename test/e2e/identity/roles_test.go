package identity_test

import (
	"net/http"
	"strings"
	"testing"

	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// role returns the body of a custom role.
func role(name string, permissions ...string) map[string]any {
	return object(name, map[string]any{"description": "made by a test", "permissions": permissions})
}

// roleBinding returns the body of a binding to a custom role.
func roleBinding(name, role string, accounts ...string) map[string]any {
	subjects := []any{}
	for _, account := range accounts {
		subjects = append(subjects,
			map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ServiceAccount", "name": account})
	}
	return object(name, map[string]any{
		"roleRef": map[string]any{"apiGroup": "cloud.vendor.io", "kind": "Role", "name": role}, "subjects": subjects,
	})
}

// TestCustomRoles lets an organization's administrator create, change and delete a role.
// The resource API, its reviews and the data planes apply each change immediately.
func TestCustomRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.user("boss", true)
	as := func(method, path string, body any) reply {
		t.Helper()
		kind := ""
		if method == http.MethodPatch {
			kind = "application/merge-patch+json"
		}
		return w.do(call{method: method, path: path, as: boss, body: body, kind: kind})
	}
	w.instance("prod")
	host := w.cluster("east", "prod")
	c := w.account("robot", false)
	control, data := w.token(c, w.server.URL), w.token(c, w.audience("prod"))
	expect := func(when string, lists, produces bool) {
		t.Helper()
		wantList, wantProduce := http.StatusForbidden, http.StatusUnauthorized
		if lists {
			wantList = http.StatusOK
		}
		if produces {
			wantProduce = http.StatusCreated
		}
		if got := w.onResources(control); got != wantList {
			t.Errorf("%s: listing instances: got %d, want %d", when, got, wantList)
		}
		if got := w.onMessages(data, host); got != wantProduce {
			t.Errorf("%s: producing: got %d, want %d", when, got, wantProduce)
		}
		can := w.review(canI, control, map[string]any{"resourceAttributes": map[string]any{
			"group": "cloud.vendor.io", "resource": "messaginginstances", "verb": "list", "namespace": w.org,
		}})
		if got, _ := can.at("status.allowed").(bool); got != lists {
			t.Errorf("%s: access review: got %v, want %v", when, got, lists)
		}
		rules := string(w.review(rulesReviews, control, nil).body)
		if got := strings.Contains(rules, "messaging.topics.produce"); got != produces ||
			strings.Contains(rules, `"role":"shop"`) != (lists || produces) {
			t.Errorf("%s: wrong rules review %s", when, rules)
		}
	}
	const list, produce = "cloud.messaginginstances.list", "messaging.topics.produce"
	as("POST", "rolebindings", roleBinding("robot", "shop", "robot")).want(422)
	as("POST", "roles", role("shop", list)).want(201)
	as("POST", "rolebindings", roleBinding("robot", "shop", "robot")).want(201)
	expect("a new role", true, false)
	as("PATCH", "roles/shop", map[string]any{"spec": map[string]any{"permissions": []string{list, produce}}}).want(200)
	expect("one permission more", true, true)
	as("PUT", "roles/shop", role("shop", produce)).want(200)
	expect("one permission less", false, true)
	w.eventually("rolebindings/robot", "ready",
		func(r reply) bool { return strings.HasPrefix(r.conditions(), "Ready=True(") })
	if got := w.eventually("roles/shop", "ready",
		func(r reply) bool {
			return strings.HasPrefix(r.conditions(),
				"Ready=True(")
		}); got.text("spec.description") != "made by a test" {
		t.Errorf("got role %s", got.body)
	}

	as("DELETE", "roles/shop", nil).want(200)
	expect("a deleted role", false, false)
	gone := w.eventually("rolebindings/robot", "without a role",
		func(r reply) bool { return r.conditions() == "Ready=False(RoleNotFound)" })
	if message := gone.text("status.conditions.0.message"); !strings.Contains(message, "shop") ||
		!strings.Contains(message, "grants nothing") {
		t.Errorf("message of the binding of a deleted role: got %q", message)
	}
	// The permissions of the deleted role are unknown, so its binding cannot be changed, except for labels.
	as("PATCH", "rolebindings/robot", map[string]any{"spec": map[string]any{"subjects": []any{}}}).want(422)
	as("PATCH", "rolebindings/robot",
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}).want(200)
	as("POST", "roles", role("shop", list)).want(201)
	expect("a role that came back", true, false)
	w.eventually("rolebindings/robot", "ready again",
		func(r reply) bool { return strings.HasPrefix(r.conditions(), "Ready=True(") })

	for name, tc := range map[string]struct {
		body  map[string]any
		wrong string
	}{
		"a predefined name":  {role("org-admin", list), "metadata.name"},
		"an older name":      {role("read-only", list), "metadata.name"},
		"no such permission": {role("r", "cloud.users.rule"), "spec.permissions[0]"},
		"a pattern":          {role("r", "cloud.*.list"), "spec.permissions[0]"},
		"a permission twice": {role("r", list, list), "spec.permissions[1]"},
		"a long description": {
			object("r", map[string]any{"description": strings.Repeat("x", 1025)}),
			"spec.description",
		},
		"a restriction in one": {
			object("r", map[string]any{"permissions": []string{list}, "instance": "prod"}),
			"instance",
		},
	} {
		if r := as("POST", "roles?dryRun=All", tc.body).want(400, 422); !strings.Contains(string(r.body), tc.wrong) {
			t.Errorf("%s: error %s does not name %s", name, r.body, tc.wrong)
		}
	}
	// A role of another organization is not visible.
	other := newWorld(t)
	other.post("rolebindings", roleBinding("b", "shop", "robot")).want(422)
	w.do(call{path: api + "/namespaces/" + other.org + "/roles", as: boss}).want(403)
	w.do(call{path: api + "/roles", as: boss}).want(403)
	w.do(call{
		method: "PATCH", path: "roles/shop/status", as: boss, kind: "application/merge-patch+json",
		body: `{}`,
	}).want(403)
}

// TestAttackRoles lets an account that may write roles and bindings, and has one further
// permission, try to gain more permissions with custom roles.
func TestAttackRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory := w.user("mallory", false)
	const list = "cloud.messaginginstances.list"
	w.bind("mallory", "account-admin", "mallory", nil)
	w.post("roles", role("harmless", list)).want(201)
	w.post("roles", role("strong", list, "messaging.topics.produce")).want(201)
	w.post("roles", role("passing", "messaging.topics.produce")).want(201)
	w.post("rolebindings", roleBinding("has", "harmless", "mallory")).want(201)
	w.post("rolebindings", roleBinding("boss", "strong", "chief")).want(201)
	w.post("rolebindings", roleBinding("dangling", "passing", "chief")).want(201)
	w.delete("roles/passing").want(200)
	patch := func(path, kind, body string) call {
		return call{method: "PATCH", path: path, kind: kind, body: body}
	}
	const merge, jsonPatch, apply, strategic = "application/merge-patch+json", "application/json-patch+json",
		"application/apply-patch+yaml", "application/strategic-merge-patch+json"
	typed := func(kind string, o map[string]any) map[string]any {
		o["apiVersion"], o["kind"] = "cloud.vendor.io/v1alpha1", kind
		return o
	}
	attempts := []call{
		{method: "POST", path: "roles", body: role("mine", "messaging.topics.produce")},
		{method: "POST", path: "roles", body: role("mine", list, "messaging.topics.produce")},
		{method: "POST", path: "roles", body: role("passing", "messaging.topics.produce")},
		{method: "PUT", path: "roles/harmless", body: role("harmless", list, "messaging.topics.produce")},
		{method: "POST", path: "roles/harmless", body: role("harmless", "messaging.topics.produce")},
		{method: "PUT", path: "roles/strong", body: role("strong", "messaging.topics.produce")},
		patch("roles/harmless", merge, `{"spec":{"permissions":["messaging.topics.produce"]}}`),
		patch("roles/harmless", strategic, `{"spec":{"permissions":["messaging.topics.produce"]}}`),
		patch("roles/harmless", jsonPatch,
			`[{"op":"add","path":"/spec/permissions/-","value":"messaging.topics.produce"}]`),
		{
			method: "PATCH", path: "roles/harmless?fieldManager=m&force=true", kind: apply,
			body: typed("Role", role("harmless", "messaging.topics.produce")),
		},
		{
			method: "PATCH", path: "roles/fresh?fieldManager=m", kind: apply,
			body: typed("Role", role("fresh", "messaging.topics.produce")),
		},
		{method: "POST", path: "roles", body: role("org-admin", list)},
		{method: "POST", path: "rolebindings", body: roleBinding("mine", "strong", "mallory")},
		{method: "POST", path: "rolebindings", body: roleBinding("mine", "passing", "mallory")},
		{method: "PUT", path: "rolebindings/boss", body: roleBinding("boss", "strong", "chief", "mallory")},
		{method: "PUT", path: "rolebindings/dangling", body: roleBinding("dangling", "passing", "chief", "mallory")},
		patch("rolebindings/dangling", jsonPatch,
			`[{"op":"add","path":"/spec/subjects/-","value":{"kind":"ServiceAccount","name":"mallory"}}]`),
		patch("rolebindings/has", merge, `{"spec":{"roleRef":{"name":"strong"}}}`),
		{
			method: "PATCH", path: "rolebindings/mine?fieldManager=m", kind: apply,
			body: typed("RoleBinding", roleBinding("mine", "strong", "mallory")),
		},
		patch("roles/harmless/status", merge, `{"status":{"conditions":[]}}`),
		{method: "POST", path: api + "/clusterroles", body: role("mine", "messaging.topics.produce")},
		{
			method: "PUT", path: api + "/clusterroles/account-admin",
			body: role("account-admin", "messaging.topics.produce"),
		},
		{method: "POST", path: api + "/namespaces/elsewhere/roles", body: role("mine", list)},
	}
	successes := 0
	for _, c := range attempts {
		c.as = mallory
		if r := w.do(c); r.status < 400 || r.status >= 500 {
			successes++
			t.Errorf("%s %s: %d %.300s", c.method, c.path, r.status, r.body)
		}
	}
	rules := string(w.review(rulesReviews, mallory, nil).body)
	if strings.Contains(rules, "messaging.topics.produce") {
		successes++
		t.Errorf("mallory has gained permissions: %s", rules)
	}
	tally.Attack(t, "gain permissions with custom roles", len(attempts)+1, successes)
	// Permissions that the caller has can be granted, and permissions can be removed from other roles.
	for _, c := range []call{
		{method: "POST", path: "roles", body: role("fair", list, "cloud.users.list")},
		{method: "POST", path: "rolebindings", body: roleBinding("fair", "harmless", "friend")},
		{
			method: "PUT", path: "roles/harmless",
			body: object("harmless", map[string]any{"description": "words", "permissions": []string{list}}),
		},
		{method: "DELETE", path: "roles/strong"},
	} {
		c.as = mallory
		w.do(c).want(200, 201)
	}
}

// ownRoles returns gifts with custom roles: defining a role, and binding an existing one
// (ownName).
func ownRoles() (defined, given []grantCase) {
	for _, predefined := range access.Roles() {
		defined = append(defined,
			grantCase{
				"a role like " + predefined.Name, role("gift", texts(predefined)...),
				predefined.Permissions(), "",
			})
		given = append(given, grantCase{
			"own role like " + predefined.Name, roleBinding("gift-own", ownName(predefined), "victim"),
			predefined.Permissions(), "",
		})
	}
	return defined, given
}

func ownName(predefined *access.Role) string { return "own-" + predefined.Name }

func texts(predefined *access.Role) []string {
	var out []string
	for _, permission := range predefined.Permissions() {
		out = append(out, string(permission))
	}
	return out
}
