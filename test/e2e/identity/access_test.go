package identity_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestNoAccessWithoutBinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nobody := w.user("nobody", false)
	for _, c := range []call{
		{path: "serviceaccounts"},
		{path: "apikeys"},
		{path: "users"},
		{path: "messagingclusters"},
		{path: "rolebindings"},
		{path: "apikeys?watch=true"},
		{path: "serviceaccounts/boss"},
		{path: "messaginginstances/x"},
		{method: http.MethodPost, path: "users", body: object("u", map[string]any{"email": "u@example.org"})},
		{method: http.MethodPost, path: "messaginginstances", body: object("i", nil)},
		{method: http.MethodDelete, path: "users"},
		{method: http.MethodDelete, path: "serviceaccounts/nobody"},
		{method: http.MethodPatch, path: "serviceaccounts/nobody", kind: "application/merge-patch+json", body: "{}"},
		{
			method: http.MethodPatch, path: "serviceaccounts/nobody/status",
			kind: "application/merge-patch+json", body: "{}",
		},
	} {
		c.as = nobody
		r := w.do(c).want(403)
		if r.text("kind") != "Status" || r.text("reason") != "Forbidden" || r.at("code") != 403.0 {
			t.Errorf("%s: %s, want Status, Forbidden and 403", r.what, r.body)
		}
	}
	// The message names the principal, the resource and the namespace in Kubernetes' words,
	// and the missing permission.
	r := w.do(call{path: "apikeys", as: nobody})
	for _, part := range []string{
		`apikeys.cloud.vendor.io is forbidden: User "nobody@` + w.org,
		`cannot list resource "apikeys" in API group "cloud.vendor.io" in the namespace "` + w.org + `"`,
		"lacks permission cloud.apikeys.list on organization/" + w.org,
	} {
		if !strings.Contains(r.text("message"), part) {
			t.Errorf("%q is not in %q, want it to contain %s", part, r.text("message"), part)
		}
	}
	// Every principal may read its own account and the predefined roles.
	w.do(call{path: "serviceaccounts/nobody", as: nobody, own: "nobody"}).want(200)
	w.do(call{path: api + "/clusterroles", as: nobody}).want(200)
	// Only the system administrator may read across organizations.
	w.do(call{path: api + "/serviceaccounts", as: w.user("boss", true)}).want(403)
	w.do(call{path: api + "/users"}).want(200)
}

func TestOwnKeysCanBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	robot := w.user("robot", false)
	w.account("other", false)
	key := w.plainKey("mine", "robot", "")
	w.plainKey("theirs", "other", "")
	w.do(call{path: "apikeys/mine", as: robot}).want(200)
	w.do(call{path: "apikeys/mine", as: key}).want(200)
	w.do(call{path: "apikeys/mine/status", as: key}).want(200)
	// A hidden key and a missing one return the same response.
	theirs, nobodys := w.do(call{path: "apikeys/theirs", as: robot}).want(403),
		w.do(call{path: "apikeys/nobodys", as: robot}).want(403)
	if a, b := strings.ReplaceAll(theirs.text("message"), "theirs", "X"),
		strings.ReplaceAll(nobodys.text("message"), "nobodys", "X"); a != b {
		t.Errorf("got responses\n%s\n%s\nwant the same", a, b)
	}
	w.do(call{path: "apikeys", as: key}).want(403)
	w.do(call{method: http.MethodDelete, path: "apikeys/mine", as: key}).want(403)
}

// shared creates an organization with two instances of two clusters each, and accounts
// whose permissions are restricted to parts of it.
func shared(t *testing.T) (w *world, users map[string]string) {
	t.Helper()
	w = newWorld(t)
	for _, instance := range []string{"prod", "test"} {
		w.post("messaginginstances", object(instance, nil)).want(201)
		for _, cluster := range []string{"a", "b"} {
			w.post("messagingclusters", object(instance+"-"+cluster, map[string]any{
				"instanceName": instance, "location": "local", "broker": map[string]any{},
			})).want(201)
		}
	}
	users = map[string]string{}
	for name, b := range map[string]struct {
		role        string
		restriction map[string]any
	}{
		"owner":   {"instance-owner", in("prod")},
		"reader":  {"instance-readonly", in("prod")},
		"pattern": {"instance-readonly", in("t*")},
		"cluster": {"cluster-owner", map[string]any{"common": map[string]any{"instance": "prod", "cluster": "prod-b"}}},
		"hr": {
			"account-admin",
			map[string]any{"cloud": map[string]any{"serviceAccount": map[string]any{"name": "w-*"}}},
		},
		"everyone": {"org-readonly", nil},
	} {
		users[name] = w.user(name, false)
		w.bind(name, b.role, name, b.restriction)
	}
	return w, users
}

func TestListsHideWhatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	w, users := shared(t)
	for _, c := range []struct{ user, path, want string }{
		{"everyone", "messagingclusters", "prod-a prod-b test-a test-b"},
		{"owner", "messaginginstances", "prod"},
		{"owner", "messagingclusters", "prod-a prod-b"},
		{"reader", "messagingclusters", "prod-a prod-b"},
		{"pattern", "messaginginstances", "test"},
		{"pattern", "messagingclusters", "test-a test-b"},
		{"cluster", "messagingclusters", "prod-b"},
		{"reader", "messagingclusters?fieldSelector=spec.instanceName%3Dtest", ""},
		{"reader", "messagingclusters?fieldSelector=metadata.name%3Dprod-a", "prod-a"},
	} {
		if got := w.do(call{path: c.path, as: users[c.user]}).want(200).items(); got != c.want {
			t.Errorf("%s sees %q of %s, want %q", c.user, got, c.path, c.want)
		}
	}
	w.do(call{path: "messaginginstances", as: users["cluster"]}).want(403)
	w.do(call{path: "users", as: users["owner"]}).want(403)
	// Paging works although hidden objects are left out of the pages.
	var seen []string
	query := url.Values{"limit": {"1"}}
	for range 10 {
		r := w.do(call{path: "messagingclusters?" + query.Encode(), as: users["pattern"]}).want(200)
		seen = append(seen, strings.Fields(r.items())...)
		if r.at("metadata.remainingItemCount") != nil {
			t.Error("page reveals the number of hidden items")
		}
		if r.text("metadata.resourceVersion") == "" {
			t.Error("page has no resourceVersion")
		}
		if r.text("metadata.continue") == "" {
			break
		}
		query.Set("continue", r.text("metadata.continue"))
	}
	if got := strings.Join(seen, " "); got != "test-a test-b" {
		t.Errorf("pages contain %q, want test-a test-b", got)
	}
}

func TestSingleObjectsAreRestricted(t *testing.T) {
	t.Parallel()
	w, users := shared(t)
	change := `{"spec":{"displayName":"mine"}}`
	for _, c := range []struct {
		user, method, path string
		body               any
		want               int
	}{
		{"reader", "GET", "messagingclusters/prod-a", nil, 200},
		{"reader", "GET", "messagingclusters/test-a", nil, 403},
		{"reader", "GET", "messagingclusters/none", nil, 403},
		{"everyone", "GET", "messagingclusters/none", nil, 404},
		{"reader", "PATCH", "messagingclusters/prod-a", change, 403},
		{"owner", "PATCH", "messagingclusters/prod-a", change, 200},
		{"owner", "PATCH", "messagingclusters/test-a", change, 403},
		{"cluster", "PATCH", "messagingclusters/prod-b", change, 200},
		{"cluster", "PATCH", "messagingclusters/prod-a", change, 403},
		{"owner", "DELETE", "messagingclusters/test-a", nil, 403},
		{"owner", "DELETE", "messagingclusters/none", nil, 403},
		{"owner", "DELETE", "messaginginstances/test", nil, 403},
		{
			"owner", "POST", "messagingclusters?dryRun=All",
			object("n", map[string]any{"instanceName": "prod", "location": "local", "broker": map[string]any{}}), 201,
		},
		{
			"owner", "POST", "messagingclusters?dryRun=All",
			object("n", map[string]any{"instanceName": "test", "location": "local", "broker": map[string]any{}}), 403,
		},
		{
			"cluster", "POST", "messagingclusters?dryRun=All",
			object("n", map[string]any{"instanceName": "prod", "location": "local", "broker": map[string]any{}}), 403,
		},
		{"owner", "POST", "messaginginstances?dryRun=All", object("new", nil), 403},
		{"hr", "POST", "serviceaccounts?dryRun=All", object("w-1", nil), 201},
		{"hr", "POST", "serviceaccounts?dryRun=All", object("x-1", nil), 403},
	} {
		kind := ""
		if c.method == http.MethodPatch {
			kind = "application/merge-patch+json"
		}
		if r := w.do(call{
			method: c.method, path: c.path, as: users[c.user], body: c.body,
			kind: kind,
		}); r.status != c.want {
			t.Errorf("%s, %s: %d, want %d: %s", c.user, r.what, r.status, c.want, r.body)
		}
	}
	// An apply that would create an object needs the permission to create it in that scope.
	apply := func(instance string) int {
		return w.do(call{
			method: http.MethodPatch, path: "messagingclusters/applied?fieldManager=me&dryRun=All", as: users["owner"],
			kind: "application/apply-patch+yaml",
			body: "{apiVersion: cloud.vendor.io/v1alpha1, kind: MessagingCluster, metadata: {name: applied}, spec: " +
				"{instanceName: " + instance + ", location: local, broker: {}}}",
		}).status
	}
	if a, b := apply("prod"), apply("test"); a != 201 || b != 403 {
		t.Errorf("applying into prod %d, into test %d; want 201, 403", a, b)
	}
}

func TestDeleteCollectionIsRestricted(t *testing.T) {
	t.Parallel()
	w, users := shared(t)
	r := w.do(call{method: http.MethodDelete, path: "messagingclusters", as: users["owner"]}).want(200)
	if got := r.items(); got != "prod-a prod-b" {
		t.Errorf("response lists %q, want prod-a prod-b", got)
	}
	w.eventually("messagingclusters", "without prod", func(r reply) bool { return r.items() == "test-a test-b" })
}

func TestWatchesHideTheSame(t *testing.T) {
	t.Parallel()
	w, users := shared(t)
	watch := w.watch("messagingclusters", users["pattern"])
	names := map[string]bool{}
	for len(names) < 2 {
		e := watch.next()
		if e.Type == "" {
			t.Fatal("watch ended")
		}
		names[e.Object.Metadata.Name] = true
	}
	w.patch("messagingclusters/prod-a", map[string]any{"spec": map[string]any{"displayName": "x"}}).want(200)
	w.patch("messagingclusters/test-a", map[string]any{"spec": map[string]any{"displayName": "seen"}}).want(200)
	for range 20 {
		e := watch.next()
		if strings.HasPrefix(e.Object.Metadata.Name, "prod") || e.Type == "" {
			t.Fatalf("event %+v", e)
		}
		if e.Type == "MODIFIED" && e.Object.Metadata.Name == "test-a" {
			break
		}
	}
	// After the role binding is deleted, the watch ends with the next event.
	w.delete("rolebindings/pattern").want(200)
	w.patch("messagingclusters/test-b", map[string]any{"spec": map[string]any{"displayName": "unseen"}}).want(200)
	for range 20 {
		e := watch.next()
		if e.Type == "ERROR" || e.Type == "" {
			return
		}
		if e.Object.Metadata.Name == "test-b" && e.Type == "MODIFIED" {
			continue // an event from before the deletion: status follows spec
		}
	}
	t.Error("watch continues without a role")
}

func TestWatchEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	key := w.plainKey("k", "robot", "")
	watch := w.watch("users", key)
	w.post("users", object("a", map[string]any{"email": "a@example.org"})).want(201)
	if e := watch.next(); e.Type != "ADDED" {
		t.Fatalf("event %+v, want ADDED", e)
	}
	w.patch("apikeys/k", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	w.post("users", object("b", map[string]any{"email": "b@example.org"})).want(201)
	for {
		e := watch.next()
		if e.Object.Metadata.Name == "b" {
			t.Fatal("watch of a revoked key continues")
		}
		if e.Type == "ERROR" && e.Object.Code == 401 {
			break
		}
		if e.Type == "" {
			t.Fatal("watch ended without an ERROR event")
		}
	}
}

func TestGrantNeedsTheGrantedPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", false)
	w.instance("prod")
	hr := w.user("hr", false)
	w.bind("hr", "account-admin", "hr", nil)
	grant := func(name, role string, restriction map[string]any) reply {
		t.Helper()
		spec := map[string]any{
			"roleRef":  map[string]any{"kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "robot"}},
		}
		if restriction != nil {
			spec["resourceNameRestriction"] = restriction
		}
		return w.do(call{method: http.MethodPost, path: "rolebindings", as: hr, body: object(name, spec)})
	}
	for _, role := range []string{"org-admin", "org-readonly", "instance-owner", "topic-producer", "schema-reader"} {
		r := grant("up", role, nil).want(403)
		if !strings.Contains(r.text("message"), "a principal can grant only permissions that it has") ||
			!strings.Contains(r.text("message"), "lacks permission") {
			t.Errorf("%s: %s, want a principal can grant only permissions that it has and lacks permission", role,
				r.text("message"))
		}
	}
	grant("same", "account-admin", nil).want(201)
	grant("less", "account-admin",
		map[string]any{"cloud": map[string]any{"serviceAccount": map[string]any{"name": "x"}}}).want(201)
	// Changing an existing binding does not help either.
	w.bind("given", "org-admin", "robot", nil)
	w.do(call{
		method: http.MethodPatch, path: "rolebindings/given", as: hr, kind: "application/merge-patch+json",
		body: `{"spec":{"subjects":[{"kind":"ServiceAccount","name":"hr"}]}}`,
	}).want(403)
	w.do(call{
		method: http.MethodPatch, path: "rolebindings/given", as: hr, kind: "application/merge-patch+json",
		body: `{"metadata":{"labels":{"harmless":"yes"}}}`,
	}).want(200)
	// The same for a binding in the older format that refers to a Role.
	old := object("legacy", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "cloud.vendor.io", "kind": "Role", "name": "admin"},
		"subjects": []any{map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ServiceAccount", "name": "robot"}},
	})
	w.do(call{method: http.MethodPost, path: "rolebindings", as: hr, body: old}).want(403)
	w.post("rolebindings", old).want(201)
	w.eventually("rolebindings/legacy", "ready",
		func(r reply) bool { return r.conditions() == "Ready=True(AllConditionStatusTrue)" })
}

func TestBindingsAreInForceWhenTheCallReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	robot := w.user("robot", false)
	for i := range 20 {
		if got := w.do(call{path: "users", as: robot}).status; got != 403 {
			t.Fatalf("round %d: without the binding: got %d, want 403", i, got)
		}
		w.bind("b", "org-readonly", "robot", nil)
		if got := w.do(call{path: "users", as: robot}).status; got != 200 {
			t.Fatalf("round %d: with the binding: got %d, want 200", i, got)
		}
		if i%2 == 0 {
			w.patch("rolebindings/b", map[string]any{"spec": map[string]any{"subjects": []any{}}}).want(200)
			if got := w.do(call{path: "users", as: robot}).status; got != 403 {
				t.Fatalf("round %d: removed from the binding: got %d, want 403", i, got)
			}
		}
		w.delete("rolebindings/b").want(200)
	}
}

func TestConditionsInCEL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"prod", "test"} {
		w.post("messaginginstances", object(name, nil)).want(201)
	}
	robot := w.user("robot", false)
	w.post("rolebindings", object("cel", map[string]any{
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": "instance-readonly"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "robot"}},
		"cel":      "srn.instance == 'test'",
	})).want(201)
	if got := w.do(call{path: "messaginginstances", as: robot}).want(200).items(); got != "test" {
		t.Errorf("sees %q, want test", got)
	}
	w.do(call{path: "messaginginstances/prod", as: robot}).want(403)
	r := w.post("rolebindings", object("bad", map[string]any{
		"roleRef": map[string]any{"kind": "ClusterRole", "name": "instance-readonly"}, "cel": "srn.instance ==",
	})).want(422)
	if r.text("details.causes.0.field") != "spec.cel" {
		t.Errorf("invalid condition: got %s, want spec.cel", r.body)
	}
}
