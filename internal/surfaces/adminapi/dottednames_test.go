package adminapi_test

import (
	"net/http"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// TestDottedNames checks the responses to a topic whose name begins with that of a namespace, and to a
// namespace whose name begins those of topics.
func TestDottedNames(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	const tenant = `{"allowedClusters":["prod"]}`
	w.Call("PUT", "/admin/v2/tenants/pay", tenant).WantStatus(http.StatusNoContent)
	w.Call("PUT", "/admin/v2/namespaces/pay/prod", "").WantStatus(http.StatusNoContent)
	for _, call := range []struct{ method, path, body string }{
		{"PUT", "/admin/v2/persistent/public/default/pay.prod.orders", ""},
		{"PUT", "/admin/v2/persistent/public/default/pay.prod.orders/partitions", "3"},
		{"PUT", "/admin/v2/persistent/public/default/pay.prod.orders/subscription/s", `"earliest"`},
		{
			"POST", "/admin/v2/schemas/public/default/pay.prod.orders/schema",
			`{"type":"STRING","schema":"","properties":{}}`,
		},
	} {
		r := w.Call(call.method, call.path, call.body)
		if r.Status != http.StatusConflict || !strings.Contains(r.Body, `topic \"orders\" of namespace pay/prod`) {
			t.Errorf("%s %s: got %d %s, want 409 with the topic in the namespace", call.method, call.path, r.Status,
				r.Body)
		}
	}
	w.Call("PUT", "/admin/v2/persistent/public/default/pay.test.orders", "").WantStatus(http.StatusNoContent)
	r := w.Call("PUT", "/admin/v2/namespaces/pay/test", "").WantStatus(http.StatusConflict)
	if !strings.Contains(r.Body, "persistent://public/default/pay.test.orders") {
		t.Errorf("namespace: got %s, want the name of the topic", r.Body)
	}
}

// TestAttackNamesOfShadowedTopics has an administrator of a tenant create namespaces to find out the names
// of topics that this account may not see.
func TestAttackNamesOfShadowedTopics(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.Call("PUT", "/admin/v2/tenants/pay", `{"allowedClusters":["prod"]}`).WantStatus(http.StatusNoContent)
	w.Call("PUT", "/admin/v2/persistent/public/default/pay.test.secret", "").WantStatus(http.StatusNoContent)
	w.Bind("mallory", "tenant-owner", access.Restriction{Tenant: "pay"})
	mallory := w.as(w.Account("mallory"))
	r := mallory.Call("PUT", "/admin/v2/namespaces/pay/test", "").WantStatus(http.StatusConflict)
	successes := 0
	if strings.Contains(r.Body, "secret") {
		successes++
	}
	tally.Attack(t, "find out names of topics by creating a namespace", 1, successes)
	w.Bind("reader", "tenant-owner", access.Restriction{Tenant: "pay"})
	w.Bind("reader", "topic-consumer", access.Restriction{Tenant: "public"})
	r = w.as(w.Account("reader")).Call("PUT", "/admin/v2/namespaces/pay/test", "").WantStatus(http.StatusConflict)
	if !strings.Contains(r.Body, "pay.test.secret") {
		t.Errorf("caller who may see the topic: got %s, want its name", r.Body)
	}
}
