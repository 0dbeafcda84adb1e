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

// grants are the bodies with which somebody could be given something, by the
// end of the route's pattern. Routes that read no body, or one in which nobody
// can be named, have none; a new route has to say which it is.
var grants = map[string][]string{
	"/tenants/{tenant}": {
		`{"adminRoles":["ME"],"allowedClusters":["prod"]}`, `{"adminRoles":["EVE","ME"],"allowedClusters":["prod"]}`,
	},
	"/namespaces/{tenant}/{namespace}": {
		`{"auth_policies":{"namespace_auth":{"ME":["produce","consume"],"EVE":["consume"]}}}`,
	},
	"/permissions/{role}": {`["consume"]`, `["produce"]`, `["produce","consume","functions"]`},
}

// harmless are the last parts of patterns whose calls name nobody: settings,
// positions, schemas and the things themselves.
var harmless = []string{
	"{group}", "offsets",
	"{topic}", "partitions", "properties", "terminate", "{subscription}", "resetcursor", "{timestamp}",
	"skip_all", "{count}",
	"{seconds}", "schema", "compatibility", "version", "topics",
	"retention", "messageTTL", "deduplication", "deduplicationEnabled", "backlogQuota",
	"maxUnackedMessagesPerSubscription",
	"maxUnackedMessagesOnSubscription", "maxMessageSize", "delayedDelivery", "schemaCompatibilityStrategy",
	"schemaValidationEnforced", "schemaSyntaxEnforced", "schemaVersionEnforced", "isAllowAutoUpdateSchema",
	"autoTopicCreation", "maxTopicsPerNamespace", "replication",
}

// bodies are what to send to a route: nothing, and every way of granting that
// any route knows, so that one that reads more than it says is found out.
func bodies(t *testing.T, r adminapi.RouteInfo) []string {
	t.Helper()
	list := []string{""}
	known := slices.Contains(harmless, r.Pattern[strings.LastIndex(r.Pattern, "/")+1:])
	for ending, own := range grants {
		known = known || strings.HasSuffix(r.Pattern, ending)
		list = append(list, own...)
	}
	if !known {
		t.Errorf("%s %s is in neither grants nor harmless: can a body of it name somebody who gets something?",
			r.Method, r.Pattern)
	}
	return list
}

// TestAttackGranting lets every predefined role make every changing call of the
// surface, with a body that gives the caller and an accomplice something.
// Afterwards neither has anything that the caller's role does not hold.
func TestAttackGranting(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for _, role := range access.Roles() {
		w := newWorld(t, messaging.Options{})
		w.Checked = false // many of these are nonsense
		w.Bind("mallory", role.Name, access.Restriction{})
		mallory := w.as(w.Account("mallory"))
		for _, r := range adminapi.Routes() {
			if r.Method == http.MethodGet {
				continue
			}
			for _, body := range bodies(t, r) {
				attempts++
				for _, path := range []string{attackPath(w, r.Pattern, "mallory"), attackPath(w, r.Pattern, "eve")} {
					restore(w)
					mallory.Call(r.Method, path,
						strings.NewReplacer("ME", w.Principal("mallory"), "EVE", w.Principal("eve")).Replace(body))
					if gained := gains(w, role); gained != "" {
						successes++
						t.Errorf("%s: %s %s with %s gave away %s", role.Name, r.Method, path, body, gained)
						revokeAll(t, w)
					}
				}
			}
		}
	}
	tally.Attack(t, "grant by the admin interface what one does not have", attempts, successes)
}

func attackPath(w *world, pattern, role string) string {
	return strings.NewReplacer(
		"{domain}", "persistent", "{tenant}", "public", "{namespace}", "default", "{topic}", "t", "{subscription}", "s",
		"{role}", strings.ReplaceAll(w.Principal(role), "/", "%2F"),
		"{timestamp}", "1", "{count}", "1", "{seconds}", "1", "{version}", "1",
	).Replace(pattern)
}

// restore makes again what an owner's call has deleted.
func restore(w *world) {
	topic := names.Topic{Namespace: names.Namespace{Tenant: "public", Name: "default"}, Local: "t"}
	if _, err := w.Broker.Topic(w.T.Context(), topic); err == nil {
		return
	}
	for _, path := range []string{
		"tenants/public", "namespaces/public/default", "persistent/public/default/t",
		"persistent/public/default/t/subscription/s",
	} {
		w.Call("PUT", "/admin/v2/"+path, "")
	}
}

// gains says what the cluster grants to the two that the role does not hold.
func gains(w *world, role *access.Role) string {
	held := role.Permissions()
	topic := names.Topic{Namespace: names.Namespace{Tenant: "public", Name: "default"}, Local: "t"}
	for _, name := range []string{"mallory", "eve"} {
		who := w.Principal(name)
		for action, permission := range map[messaging.Action]access.Permission{
			messaging.ActionProduce: brokerhttp.PermitProduce, messaging.ActionConsume: brokerhttp.PermitConsume,
		} {
			if w.Broker.Grants(who, topic, action) && !slices.Contains(held, permission) {
				return fmt.Sprintf("%s to %s", permission, name)
			}
		}
		if w.Broker.Administers(who, "public") {
			for _, permission := range messaging.TenantAdminPermissions() {
				if !slices.Contains(held, permission) {
					return fmt.Sprintf("%s to %s, as administrator of the tenant", permission, name)
				}
			}
		}
	}
	return ""
}

func revokeAll(t *testing.T, w *world) {
	t.Helper()
	err := w.Broker.UpdateTenant(t.Context(), "public", func(tenant *messaging.Tenant) error {
		tenant.AdminRoles = nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfTenantAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	w.Ready("t", 0)
	eve := w.Principal("eve")
	with := func(roles string) string { return `{"adminRoles":[` + roles + `],"allowedClusters":["prod"]}` }
	w.Bind("op", "cluster-operator", access.Restriction{})
	w.Bind("admin", "tenant-admin", access.Restriction{Tenant: "public"})
	operator, admin := w.as(w.Account("op")), w.as(w.Account("admin"))

	reply := operator.Call("POST", "/admin/v2/tenants/public", with(`"`+eve+`"`)).Want(403)
	if !strings.Contains(reply.Body, "messaging.tenants.manage") || !strings.Contains(reply.Body, "nobody can grant") {
		t.Errorf("the refusal is %s, want the permission that is missing and why", reply.Body)
	}
	if got := w.Log.Last(); got.Status != 403 || got.Verb != "manage" {
		t.Errorf("audit record %+v, want a refused manage", got)
	}
	operator.Call("POST", "/admin/v2/tenants/public", with("")).Want(204)
	admin.Call("POST", "/admin/v2/tenants/public", with(`"`+eve+`"`)).Want(204)
	// What is there already is no grant; taking it away is for those who manage.
	operator.Call("POST", "/admin/v2/tenants/public", with(`"`+eve+`"`)).Want(204)
	operator.Call("POST", "/admin/v2/tenants/public", with("")).Want(403)
	if !w.Broker.Administers(eve, "public") {
		t.Error("eve is no administrator after a refused change, want one")
	}
	admin.Call("POST", "/admin/v2/tenants/public", with("")).Want(204)
}
