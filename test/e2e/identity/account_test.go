package identity_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestAccountLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := w.post("serviceaccounts", object("robot", nil)).want(201)
	if got := created.text("metadata.finalizers.0"); got != "serviceaccount.finalizers.cloud.vendor.io" {
		t.Errorf("created with finalizer %q, want serviceaccount.finalizers.cloud.vendor.io", got)
	}
	if created.at("status.privateKeyData") != nil {
		t.Error("created with credentials, want none yet")
	}
	c := w.credentialsOf("robot")
	host := strings.TrimPrefix(w.server.URL, "http://")
	if c.Type != "vendor_service_account" || c.ClientEmail != "robot@"+w.org+"."+host || c.IssuerURL != w.server.URL ||
		c.ClientID == "" {
		t.Errorf("credentials file: type %q, e-mail %q, issuer %q, client %q", c.Type, c.ClientEmail,
			c.IssuerURL, c.ClientID)
	}
	r := w.do(call{path: "serviceaccounts/robot", secret: true})
	if r.text("status.privateKeyType") != "TYPE_VENDOR_CREDENTIALS_FILE" ||
		r.conditions() != "Ready=True(Provisioned)" {
		t.Errorf("status: %s %s, want TYPE_VENDOR_CREDENTIALS_FILE, Ready=True(Provisioned)",
			r.text("status.privateKeyType"), r.conditions())
	}
	// A change of a label does not create new credentials.
	w.do(call{
		method: http.MethodPatch, path: "serviceaccounts/robot", kind: "application/merge-patch+json", secret: true,
		body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}},
	}).want(200)
	if again := w.credentialsOf("robot"); again != c {
		t.Error("credentials changed with a label")
	}
}

func TestSecretsNeedPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.user("boss", true)
	robot := w.user("robot", false)
	reader := w.user("reader", false)
	hr := w.user("hr", false)
	w.bind("reader", "org-readonly", "reader", nil)
	w.bind("hr", "account-admin", "hr", nil)
	sees := func(token, account string) bool {
		t.Helper()
		one := w.do(call{path: "serviceaccounts/" + account, as: token, secret: true}).want(200)
		status := w.do(call{path: "serviceaccounts/" + account + "/status", as: token, secret: true}).want(200)
		if (one.at("status.privateKeyData") == nil) != (status.at("status.privateKeyData") == nil) {
			t.Errorf("%s and its status subresource differ", account)
		}
		return one.at("status.privateKeyData") != nil
	}
	for _, c := range []struct {
		who, token, account string
		want                bool
	}{
		{"an administrator", boss, "robot", true},
		{"an administrator, of themselves", boss, "boss", true},
		{"an account, of itself", robot, "robot", false},
		{"a reader", reader, "robot", false},
		{"a manager of accounts, of a powerless one", hr, "robot", true},
		{"a manager of accounts, of the administrator", hr, "boss", false},
		{"a manager of accounts, of one with other rights", hr, "reader", false},
	} {
		if got := sees(c.token, c.account); got != c.want {
			t.Errorf("%s sees the secret of %s: %v, want %v", c.who, c.account, got, c.want)
		}
	}
	// Lists and watches hide the same; do checks that responses contain no other secret.
	for _, query := range []string{
		"", "?watch=true&timeoutSeconds=1", "?limit=1",
		"?fieldSelector=metadata.name%3Dboss",
	} {
		w.do(call{path: "serviceaccounts" + query, as: reader, own: "reader"}).want(200)
	}
}

func TestOnlyAdministratorsMakeAdministrators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.user("boss", true)
	hr := w.user("hr", false)
	w.bind("hr", "account-admin", "hr", nil)
	admin := object("king", nil, "annotations.cloud.vendor.io/service-account-role", "admin")
	r := w.do(call{method: http.MethodPost, path: "serviceaccounts", as: hr, body: admin}).want(403)
	if r.text("reason") != "Forbidden" || !strings.Contains(r.text("message"), "lacks permission") {
		t.Errorf("got %s, want Forbidden and lacks permission", r.body)
	}
	w.do(call{method: http.MethodPost, path: "serviceaccounts", as: hr, body: object("clerk", nil)}).want(201)
	w.do(call{method: http.MethodPost, path: "serviceaccounts", as: boss, body: admin}).want(201)
	for name, role := range map[string]any{"clerk": "admin", "king": nil} {
		r := w.patch("serviceaccounts/"+name, map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{"annotations.cloud.vendor.io/service-account-role": role},
		}}).want(422)
		if !strings.Contains(r.text("details.causes.0.field"), "service-account-role") {
			t.Errorf("%s: %s, want service-account-role", name, r.body)
		}
	}
}

func TestSystemAdministratorIsProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	home := &world{T: t, server: w.server, org: "default"}
	boss := home.user("boss-of-default", true)
	home.do(call{method: http.MethodDelete, path: "serviceaccounts/admin", as: boss}).want(403)
	home.do(call{
		method: http.MethodPost, path: "apikeys", as: boss,
		body: object("crown", map[string]any{"serviceAccountName": "admin"}),
	}).want(403)
	r := home.do(call{path: "serviceaccounts/admin", as: boss}).want(200)
	if r.at("status.privateKeyData") != nil {
		t.Error("administrator of an organization can read the system administrator's secret")
	}
	home.delete("serviceaccounts/boss-of-default").want(200, 202)
}

func TestDeletingAnAccountEndsEverythingOfIt(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"", "?propagationPolicy=Foreground", "?propagationPolicy=Background"} {
		t.Run("policy"+policy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.account("robot", true)
			token := w.token(c, w.server.URL)
			key := w.plainKey("k", "robot", "")
			w.post("serviceaccountbindings", object("b", map[string]any{
				"serviceAccountName": "robot", "poolMemberRef": map[string]any{"namespace": "default", "name": "local"},
			})).want(201)
			if w.onResources(token) != 200 || w.onResources(key) != 200 {
				t.Fatal("account does not work before the deletion")
			}
			r := w.delete("serviceaccounts/robot"+policy).want(200, 202)
			// After the delete call has returned, no credential works, whether finalizers remain or not.
			if a, b := w.onResources(token), w.onResources(key); a != 401 || b != 401 {
				t.Errorf("after the delete call: token got %d, key got %d; want 401 each", a, b)
			}
			if r.text("kind") == "ServiceAccount" && r.text("metadata.deletionTimestamp") == "" {
				t.Errorf("response has no deletionTimestamp: %s", r.body)
			}
			w.do(call{method: http.MethodPost, path: "/oauth/token", as: "-", body: map[string]string{
				"grant_type": "client_credentials", "client_id": c.ClientID, "client_secret": c.ClientSecret,
				"audience": w.server.URL,
			}}).want(401)
			w.eventuallyGone("serviceaccounts/robot")
			// Dependent objects are deleted before the account.
			w.get("apikeys/k").want(404)
			w.get("serviceaccountbindings/b").want(404)
			// A new account with the same name inherits nothing.
			w.account("robot", false)
			if a, b := w.onResources(token), w.onResources(key); a != 401 || b != 401 {
				t.Errorf("new account with the same name: old token got %d, old key got %d; want 401 each", a, b)
			}
		})
	}
}

func TestDeletingManyAccountsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := []string{w.user("a", true), w.user("b", true)}
	w.delete("serviceaccounts").want(200)
	for i, token := range tokens {
		if got := w.onResources(token); got != 401 {
			t.Errorf("token %d still gets %d, want 401", i, got)
		}
	}
	w.eventually("serviceaccounts", "empty", func(r reply) bool { return r.items() == "" })
}

func TestAccountInItsGracePeriodLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.user("robot", true)
	w.delete("serviceaccounts/robot?gracePeriodSeconds=2").want(200, 202)
	if got := w.onResources(token); got != 200 {
		t.Errorf("during the grace period: got %d, want 200", got)
	}
	w.eventuallyGone("serviceaccounts/robot")
	if got := w.onResources(token); got != 401 {
		t.Errorf("after the grace period: got %d, want 401", got)
	}
}

func TestServiceAccountBinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := map[string]any{
		"serviceAccountName": "robot",
		"poolMemberRef":      map[string]any{"namespace": "default", "name": "local"},
	}
	w.post("serviceaccountbindings", object("robot.default.local", spec)).want(201)
	w.eventually("serviceaccountbindings/robot.default.local", "waiting for its account", func(r reply) bool {
		return r.conditions() == "IAMAccountReady=True(NotRequired) Ready=False(ServiceAccountNotFound)"
	})
	w.account("robot", false)
	r := w.eventually("serviceaccountbindings/robot.default.local", "ready", func(r reply) bool {
		return r.conditions() == "IAMAccountReady=True(NotRequired) Ready=True(AllConditionStatusTrue)"
	})
	if r.text("metadata.ownerReferences.0.kind") != "ServiceAccount" {
		t.Errorf("owner: %s, want ServiceAccount", r.body)
	}
	spec["poolMemberRef"] = map[string]any{"namespace": "default", "name": "moon"}
	w.post("serviceaccountbindings", object("moon", spec)).want(201)
	w.eventually("serviceaccountbindings/moon", "without a member", func(r reply) bool {
		return strings.HasSuffix(r.conditions(), "Ready=False(PoolMemberNotFound)")
	})
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	invite := func(name, decision, expiration string) {
		t.Helper()
		w.post("users", object(name, map[string]any{"email": name + "@example.org", "invitation": map[string]any{
			"decision": decision, "expiration": expiration,
		}})).want(201)
	}
	invite("yes", "accepted", "2020-01-01T00:00:00Z")
	invite("no", "declined", "2099-01-01T00:00:00Z")
	invite("late", "pending", "2020-01-01T00:00:00Z")
	invite("open", "pending", "2099-01-01T00:00:00Z")
	for name, want := range map[string]string{
		"yes": "NotInvited", "no": "InvitationDeclined", "late": "InvitationExpired", "open": "InvitationPending",
	} {
		want = "Active=False(" + want + ") Ready=False(" + want + ")"
		w.eventually("users/"+name, want, func(r reply) bool { return r.conditions() == want })
	}
	w.delete("users/open").want(200, 202)
	w.eventuallyGone("users/open")
}
