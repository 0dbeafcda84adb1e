package adminapi_test

import (
	"strconv"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// TestAttackProbeNamespaces: callers get the same response for a namespace, a tenant or a topic that they have no
// permission on and for one that does not exist.
func TestAttackProbeNamespaces(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.Groups()
	w.Call("PUT", "/admin/v2/tenants/tenanthere", `{"adminRoles":[],"allowedClusters":["standalone"]}`).WantStatus(204)
	for _, ns := range []string{"spacehere", "other"} {
		w.Call("PUT", "/admin/v2/namespaces/tenanthere/"+ns, "{}").WantStatus(204)
	}
	w.Call("PUT", "/admin/v2/persistent/tenanthere/spacehere/orders", "").WantStatus(204)
	w.Bind("neighbour", "namespace-owner", access.Restriction{Tenant: "tenanthere", Namespace: "other"})
	attempts, successes := 0, 0
	for _, account := range []string{"nobody", "neighbour"} {
		caller := w.as(w.Account(account))
		for _, call := range [][2]string{
			{"GET", "/admin/v2/namespaces/T/N"},
			{"GET", "/admin/v2/namespaces/T/N/topics"},
			{"GET", "/admin/v2/namespaces/T/N/permissions"},
			{"GET", "/admin/v2/namespaces/T/N/properties"},
			{"GET", "/admin/v2/namespaces/T/N/retention"},
			{"DELETE", "/admin/v2/namespaces/T/N"},
			{"GET", "/admin/v2/persistent/T/N"},
			{"GET", "/admin/v2/persistent/T/N/partitioned"},
			{"PUT", "/admin/v2/persistent/T/N/new"},
			{"GET", "/admin/v2/persistent/T/N/orders/stats"},
			{"GET", "/admin/v2/persistent/T/N/orders/partitions"},
			{"GET", "/admin/v2/persistent/T/N/orders/internalStats"},
			{"GET", "/admin/v2/persistent/T/N/orders/subscriptions"},
			{"GET", "/admin/v2/persistent/T/N/orders/subscription/s/position/1"},
			{"GET", "/admin/v2/persistent/T/N/orders/ledger/1/entry/0"},
			{"GET", "/admin/v2/schemas/T/N/orders/schema"},
			{"GET", "/rest-stream/admin/v1/topics?namespace=T/N"},
			{"GET", "/rest-stream/admin/v1/groups/g?tenant=T"},
			{"POST", "/rest-stream/admin/v1/topics"},
		} {
			response := func(tenant, namespace string) string {
				path := strings.NewReplacer("T", tenant, "N", namespace).Replace(call[1])
				r := caller.Call(call[0], path, `{"topic_name":"`+tenant+"."+namespace+`.new","partitions_count":1}`)
				text := strconv.Itoa(r.Status) + " " + r.Body
				return strings.NewReplacer(tenant, "T", namespace, "N").Replace(text)
			}
			attempts++
			existing := response("tenanthere", "spacehere")
			if missing := response("tenanthere", "spacegone"); existing != missing {
				successes++
				t.Errorf("%s %s as %s: got %s for an existing namespace and %s for a missing one", call[0], call[1],
					account, existing, missing)
			}
			if account == "neighbour" {
				continue // may know the tenant
			}
			attempts++
			if missing := response("tenantgone", "spacehere"); existing != missing {
				successes++
				t.Errorf("%s %s as %s: got %s for an existing tenant and %s for a missing one", call[0], call[1],
					account, existing, missing)
			}
		}
	}
	tally.Attack(t, "find out over HTTP which namespaces and topics exist", attempts, successes)
}
