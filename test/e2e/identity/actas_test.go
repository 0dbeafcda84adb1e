package identity_test

import (
	"net/http"
	"strings"
	"testing"

	"freshet/test/tally"
)

// TestAttackActingAsAnAccount checks that a manager of accounts cannot gain the permissions
// of an account by creating a key for it or reading its credentials. The account has no
// role, but is the administrator of a tenant or may consume inside a cluster.
func TestAttackActingAsAnAccount(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for name, grant := range map[string]call{
		"tenant": {method: http.MethodPost, path: "/admin/v2/tenants/public", body: map[string]any{
			"adminRoles": []any{"VICTIM"}, "allowedClusters": []any{"east"},
		}},
		"namespace": {
			method: http.MethodPost, path: "/admin/v2/namespaces/public/default/permissions/VICTIM",
			body: []any{"consume"},
		},
		"topic": {
			method: http.MethodPost, path: "/admin/v2/persistent/public/default/hello/permissions/VICTIM",
			body: []any{"produce"},
		},
	} {
		w := newWorld(t)
		w.instance("prod")
		host := w.cluster("east", "prod")
		victim := w.account("victim", false)
		grant = named(grant, victim.ClientEmail)
		grant.host = host
		w.do(grant).want(204)
		mallory := w.user("mallory", false)
		w.bind("mallory-accounts", "account-admin", "mallory", nil)

		attempts += 2
		key := call{
			method: http.MethodPost, path: "apikeys", as: mallory, secret: true,
			body: object("key", map[string]any{"serviceAccountName": "victim"}),
		}
		if r := w.do(key); r.status != http.StatusForbidden {
			successes++
			t.Errorf("%s: creating a key of an account with more permissions: got %d, want 403: %.300s", name,
				r.status, r.body)
		}
		read := call{path: "serviceaccounts/victim", as: mallory, secret: true}
		if r := w.do(read).want(200); r.text("status.privateKeyData") != "" {
			successes++
			t.Errorf("%s: credentials of an account with more permissions are shown", name)
		}

		// A caller that has all permissions of the account may.
		w.bind("mallory-owns", "tenant-owner", "mallory", nil)
		w.do(key).want(201)
		if r := w.do(read).want(200); r.text("status.privateKeyData") == "" {
			t.Errorf("%s: credentials are hidden from a caller with all permissions of the account", name)
		}
	}
	tally.Attack(t, "act as another account", attempts, successes)
}

// named replaces the placeholder VICTIM in a call by a principal.
func named(c call, principal string) call {
	c.path = strings.ReplaceAll(c.path, "VICTIM", principal)
	if body, ok := c.body.(map[string]any); ok {
		body["adminRoles"] = []any{principal}
	}
	return c
}
