package adminapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/test/tally"
)

// grants are the bodies that can grant permissions, by the end of the route's pattern.
// Routes that read no body, or a body without principals, are in harmless. A new route
// must be in one of the two lists.
var grants = map[string][]string{
	"/tenants/{tenant}": {
		`{"adminRoles":["ME"],"allowedClusters":["prod"]}`, `{"adminRoles":["EVE","ME"],"allowedClusters":["prod"]}`,
	},
	"/namespaces/{tenant}/{namespace}": {
		`{"auth_policies":{"namespace_auth":{"ME":["produce","consume"],"EVE":["consume"]}}}`,
	},
	"/permissions/{role}": {`["consume"]`, `["produce"]`, `["produce","consume","functions"]`},
}

// harmless are the last segments of patterns whose bodies name no principal: settings,
// positions, schemas, topics and subscriptions.
var harmless = []string{
	"{group}", "offsets",
	"{topic}", "partitions", "properties", "terminate", "{subscription}", "resetcursor", "{timestamp}",
	"skip_all", "{count}", "replay_dead_letters", "filter",
	"{seconds}", "schema", "compatibility", "version", "topics",
	"retention", "messageTTL", "deduplication", "deduplicationEnabled", "backlogQuota",
	"maxUnackedMessagesPerSubscription",
	"maxUnackedMessagesOnSubscription", "maxMessageSize", "require", "delayedDelivery", "schemaCompatibilityStrategy",
	"schemaValidationEnforced", "schemaSyntaxEnforced", "schemaVersionEnforced", "isAllowAutoUpdateSchema",
	"autoTopicCreation", "maxTopicsPerNamespace", "replication",
}

// requestBodies returns the bodies to send to a route: an empty one, and every body that can
// grant permissions on any route. So the test also finds a route that reads more than
// it documents.
func requestBodies(t *testing.T, r adminapi.RouteInfo) []string {
	t.Helper()
	list := []string{""}
	known := slices.Contains(harmless, r.Pattern[strings.LastIndex(r.Pattern, "/")+1:])
	for ending, own := range grants {
		known = known || strings.HasSuffix(r.Pattern, ending)
		list = append(list, own...)
	}
	if !known {
		t.Errorf("%s %s is in neither grants nor harmless; add it to grants if its body can grant permissions",
			r.Method, r.Pattern)
	}
	return list
}

// TestAttackGranting makes every changing call of the surface with every predefined
// role, with bodies that grant permissions to the caller and to an accomplice.
// Afterwards neither of them has a permission that the caller's role does not have.
func TestAttackGranting(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for _, role := range access.Roles() {
		w := newHarness(t, messaging.Options{})
		w.ValidateResponses = false // many of these requests are invalid
		w.Bind("mallory", role.Name, access.Restriction{})
		mallory := w.as(w.Account("mallory"))
		for _, r := range adminapi.Routes() {
			if r.Method == http.MethodGet {
				continue
			}
			for _, body := range requestBodies(t, r) {
				attempts++
				for _, path := range []string{attackPath(w, r.Pattern, "mallory"), attackPath(w, r.Pattern, "eve")} {
					recreateTopic(w)
					mallory.Call(r.Method, path,
						strings.NewReplacer("ME", w.Principal("mallory"), "EVE", w.Principal("eve")).Replace(body))
					if gained := gainedPermission(w, role); gained != "" {
						successes++
						t.Errorf("%s: %s %s with %s granted %s", role.Name, r.Method, path, body, gained)
						revokeAll(t, w)
					}
				}
			}
		}
	}
	tally.Attack(t, "granting permissions that the caller does not have, over the admin interface", attempts, successes)
}

func attackPath(w *harness, pattern, role string) string {
	return strings.NewReplacer(
		"{domain}", "persistent", "{tenant}", "public", "{namespace}", "default", "{topic}", "t", "{subscription}", "s",
		"{role}", strings.ReplaceAll(w.Principal(role), "/", "%2F"),
		"{timestamp}", "1", "{count}", "1", "{seconds}", "1", "{version}", "1",
	).Replace(pattern)
}

// recreateTopic recreates the topic and its parents if a call has deleted them.
func recreateTopic(w *harness) {
	topic := names.Topic{Namespace: names.Namespace{Tenant: "public", Name: "default"}, Local: "t"}
	if _, err := w.Broker.Catalogue.Topic(w.T.Context(), topic); err == nil {
		return
	}
	for _, path := range []string{
		"tenants/public", "namespaces/public/default", "persistent/public/default/t",
		"persistent/public/default/t/subscription/s",
	} {
		w.Call("PUT", "/admin/v2/"+path, "")
	}
}

// gainedPermission returns a permission that the cluster grants to mallory or eve but that the
// role does not have, "" if there is none.
func gainedPermission(w *harness, role *access.Role) string {
	held := role.Permissions()
	topic := names.Topic{Namespace: names.Namespace{Tenant: "public", Name: "default"}, Local: "t"}
	for _, name := range []string{"mallory", "eve"} {
		caller := w.Principal(name)
		for _, permission := range messaging.TenantAdminPermissions() {
			if w.Broker.Grants.Granted(caller, permission, topic) && !slices.Contains(held, permission) {
				return fmt.Sprintf("%s to %s", permission, name)
			}
		}
	}
	return ""
}

func revokeAll(t *testing.T, w *harness) {
	t.Helper()
	err := w.Broker.Catalogue.UpdateTenant(t.Context(), "public", func(tenant *messaging.Tenant) error {
		tenant.AdminRoles = nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfTenantAdmins(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	eve := w.Principal("eve")
	with := func(roles string) string { return `{"adminRoles":[` + roles + `],"allowedClusters":["prod"]}` }
	w.Bind("op", "cluster-operator", access.Restriction{})
	w.Bind("admin", "tenant-admin", access.Restriction{Tenant: "public"})
	operator, admin := w.as(w.Account("op")), w.as(w.Account("admin"))

	reply := operator.Call("POST", "/admin/v2/tenants/public", with(`"`+eve+`"`)).WantStatus(403)
	if !strings.Contains(reply.Body, "messaging.tenants.manage") ||
		!strings.Contains(reply.Body, "can grant only permissions") {
		t.Errorf("got the denial %s, want the missing permission and the reason", reply.Body)
	}
	if got := w.Log.Last(); got.Status != 403 || got.Verb != "manage" {
		t.Errorf("audit record: got %+v, want a denied manage", got)
	}
	operator.Call("POST", "/admin/v2/tenants/public", with("")).WantStatus(204)
	admin.Call("POST", "/admin/v2/tenants/public", with(`"`+eve+`"`)).WantStatus(204)
	// Repeating a stored administrator is not a grant; removing one needs manage.
	operator.Call("POST", "/admin/v2/tenants/public", with(`"`+eve+`"`)).WantStatus(204)
	operator.Call("POST", "/admin/v2/tenants/public", with("")).WantStatus(403)
	topic := names.Topic{Namespace: names.PublicDefault, Local: "t"}
	if !w.Broker.Grants.Granted(eve, brokerhttp.PermitProduce, topic) {
		t.Error("eve is no longer an administrator after a denied change")
	}
	admin.Call("POST", "/admin/v2/tenants/public", with("")).WantStatus(204)
}
