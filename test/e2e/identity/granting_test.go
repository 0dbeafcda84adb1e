package identity_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// grantCase is a way to grant permissions by creating a resource: the body, and the permissions that it grants.
type grantCase struct {
	name   string
	body   map[string]any
	grants []access.Permission
	path   string // "" means the collection of the kind
}

// grantCases returns all ways to grant permissions, by kind. A kind that grants nothing has an
// empty list; a kind that is missing fails the test.
func grantCases() map[string][]grantCase {
	all := access.Permissions()
	bindings := []grantCase{}
	for _, role := range access.Roles() {
		bindings = append(bindings, grantCase{"role " + role.Name, object("gift", map[string]any{
			"roleRef": map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ClusterRole", "name": role.Name},
			"subjects": []any{map[string]any{
				"apiGroup": "cloud.vendor.io", "kind": "ServiceAccount",
				"name": "victim",
			}},
		}), role.Permissions(), ""})
	}
	roles, ownBindings := ownRoles()
	return map[string][]grantCase{
		"rolebindings": append(bindings, ownBindings...),
		"roles":        roles,
		"serviceaccounts": {{
			"an administrator",
			object("gift", nil, "annotations.cloud.vendor.io/service-account-role", "admin"), all, "",
		}},
		"apikeys": {
			{"a key of an administrator", object("gift", map[string]any{"serviceAccountName": "boss"}), all, ""},
			{"a key of an account to come", object("gift", map[string]any{"serviceAccountName": "absent"}), all, ""},
		},
		"serviceaccounts/token": {{"a token of an administrator", map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{},
		}, all, "serviceaccounts/boss/token"}},
		"serviceaccounts/rotate": {{"the credentials of an administrator", map[string]any{
			"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "CredentialsRotation", "spec": map[string]any{},
		}, all, "serviceaccounts/boss/rotate"}},
		"serviceaccountbindings": nil, // restricts where an account may be used
		"users": {{
			"the user of a binding", object("chief", map[string]any{"email": "gift@example.org"}), all, "",
		}},
		"users/invite": {{"the password of an administrator", map[string]any{
			"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "InvitationLink", "spec": map[string]any{},
		}, all, "users/head/invite"}},
		"messaginginstances": nil,
		"messagingclusters":  nil,
		// No role can create these; TestEveryRoleAndEveryOperation checks that.
		"clusterroles": nil, "pools": nil, "poolmembers": nil,
	}
}

// TestAttackGrantingByResources lets every role create everything that grants permissions,
// as a dry run. That must fail for roles that do not have those permissions.
func TestAttackGrantingByResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known := grantCases()
	for _, kind := range creatable(w) {
		if _, ok := known[kind]; !ok {
			t.Errorf("kind %s is not in gifts; add the permissions that creating one grants", kind)
		}
	}
	w.account("boss", true)
	w.account("victim", false)
	w.post("users", object("head", map[string]any{"email": "head@example.org"})).want(201)
	for _, user := range []string{"head", "chief"} { // user chief does not exist yet
		w.post("rolebindings", object("of-"+user, map[string]any{
			"roleRef":  map[string]any{"apiGroup": "cloud.vendor.io", "kind": "ClusterRole", "name": "org-admin"},
			"subjects": []any{map[string]any{"apiGroup": "cloud.vendor.io", "kind": "User", "name": user}},
		})).want(201)
	}
	for _, predefined := range access.Roles() {
		w.post("roles", role(ownName(predefined), texts(predefined)...)).want(201)
	}
	attempts, successes := 0, 0
	for _, role := range access.Roles() {
		name := "mallory-" + role.Name
		token := w.user(name, false)
		w.bind(name, role.Name, name, nil)
		held := role.Permissions()
		for kind, list := range known {
			for _, g := range list {
				attempts++
				r := w.do(call{
					method: http.MethodPost, path: cmp.Or(g.path, kind) + "?dryRun=All", as: token,
					body: g.body, secret: true,
				})
				if r.status == http.StatusCreated && !holdsAll(held, g.grants) {
					successes++
					t.Errorf("role %s could create %s: %.200s", role.Name, g.name, r.body)
				}
				if may := slices.Contains(held, access.Permission(fmt.Sprintf("cloud.%s.create", kind))); may &&
					holdsAll(held, g.grants) {
					r.want(http.StatusCreated, http.StatusUnprocessableEntity)
				}
			}
		}
	}
	tally.Attack(t, "grant missing permissions by creating resources", attempts, successes)
}

func holdsAll(held, wanted []access.Permission) bool {
	return !slices.ContainsFunc(wanted, func(p access.Permission) bool { return !slices.Contains(held, p) })
}

// creatable returns the kinds that can be created, according to the server's discovery document.
func creatable(w *world) []string {
	w.Helper()
	resources, _ := w.get(api).want(200).at("resources").([]any)
	var kinds []string
	for _, r := range resources {
		resource, _ := r.(map[string]any)
		name, _ := resource["name"].(string)
		if verbs, _ := resource["verbs"].([]any); slices.Contains(verbs, any("create")) {
			kinds = append(kinds, name)
		}
	}
	if len(kinds) == 0 {
		w.Fatal("discovery document lists no kinds")
	}
	return kinds
}
