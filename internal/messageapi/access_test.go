package messageapi_test

import (
	"strings"
	"testing"

	"freshet/internal/access"
	"freshet/internal/audit"
	"freshet/internal/identity"
	"freshet/internal/messaging"
)

// bind gives an account a role.
func (w *world) bind(account, role string, on access.Restriction) {
	w.t.Helper()
	on.Organization = organization
	err := w.policy.SetBinding(access.Binding{
		Organization: organization, Name: account + "-" + role, Role: role, RoleKind: "ClusterRole",
		Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: account}},
		Restriction: &on,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestWhoIsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	stranger, _ := w.identity.Account("elsewhere", "stranger", func(a *identity.Account) { a.Admin = true })
	other, _ := w.identity.Account(organization, "other", func(a *identity.Account) { a.Admin = true })
	for name, token := range map[string]string{
		"none":           "",
		"garbage":        "garbage",
		"other audience": w.identity.Token(other, identity.InstanceAudience(organization, "elsewhere")),
		"other company":  w.identity.Token(stranger, identity.InstanceAudience("elsewhere", instance)),
	} {
		t.Run(name, func(t *testing.T) {
			as := w.as(token)
			as.call("POST", topic+"/message", "x").want(401)
			as.call("POST", topic+"/s/message", "").want(401)
			as.call("PUT", topic+"/s/message", "x").want(401)
			as.call("GET", topic+"/tail", "").want(401)
			as.call("GET", "/admin/v2/tenants", "").want(401)
			as.call("PUT", "/admin/v2/persistent/public/default/t/subscription/z", "").want(401)
			as.call("GET", "/rest-stream/admin/v1/topics", "").want(401)
		})
	}
	// An administrator of another organization holds a token of ours.
	foreign := w.as(w.identity.Token(stranger, identity.InstanceAudience(organization, instance)))
	foreign.call("POST", topic+"/message", "x").want(401)
	foreign.call("GET", "/admin/v2/tenants", "").want(403)
}

func TestWithoutAnyRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	nobody := w.as(w.account("nobody"))
	r := nobody.call("POST", topic+"/message", "x").want(401)
	if !strings.Contains(r.body, "messaging.topics.produce") || !strings.Contains(r.header.Get("WWW-Authenticate"), "insufficient_scope") {
		t.Errorf("body %s, challenge %s", r.body, r.header.Get("WWW-Authenticate"))
	}
	if got := w.log.last(); got.Decision != audit.Denied || got.Permission != "messaging.topics.produce" || got.Status != 401 ||
		got.Principal != w.principal("nobody") || !strings.Contains(got.Scope, "topic/t") {
		t.Errorf("audit record %+v", got)
	}
	nobody.call("POST", topic+"/s/message", "").want(401)
	nobody.call("PUT", topic+"/s/message", "x").want(401)
	for _, s := range []step{
		{"GET", "tenants", "", 403, ""},
		{"GET", "tenants/public", "", 403, ""},
		{"PUT", "tenants/x", "", 403, ""},
		{"GET", "namespaces/public", "", 403, ""},
		{"GET", "namespaces/nobody", "", 403, ""},
		{"GET", "namespaces/public/default", "", 403, ""},
		{"GET", "persistent/public/default", "", 403, ""},
		{"GET", "persistent/public/none", "", 403, ""},
		{"PUT", "persistent/public/default/x", "", 403, ""},
		{"DELETE", "persistent/public/default/t", "", 403, ""},
		{"PUT", "persistent/public/default/t/subscription/x", "", 403, ""},
		{"POST", "schemas/public/default/t/schema", `{"type":"STRING","schema":""}`, 403, ""},
		{"GET", "schemas/public/default/t/schema", "", 403, ""},
		{"POST", "namespaces/public/default/permissions/x", `["produce"]`, 403, ""},
		{"POST", "namespaces/public/default/retention", `{}`, 403, ""},
		{"GET", "persistent/public/default/t/stats", "", 403, ""},
		{"GET", "persistent/public/default/t/subscription/s/position/1", "", 403, ""},
	} {
		nobody.call(s.method, "/admin/v2/"+s.path, s.body).want(s.status)
	}
}

func TestRolesOfBindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	mine, other := w.ready("mine", 0), w.ready("other", 0)
	w.bind("producer", "topic-producer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"})
	w.bind("consumer", "topic-consumer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"})
	producer, consumer := w.as(w.account("producer")), w.as(w.account("consumer"))

	producer.call("POST", mine+"/message", "x").want(201)
	producer.call("POST", other+"/message", "x").want(401)
	producer.call("POST", mine+"/s/message", "").want(401)
	producer.call("POST", "/admin/v2/schemas/public/default/mine/schema", `{"type":"STRING","schema":""}`).want(200)
	got := consumer.call("POST", mine+"/s/message", "").want(200)
	consumer.call("PUT", mine+"/s/message", got.id()).want(204)
	consumer.call("POST", mine+"/message", "x").want(401)
	consumer.call("POST", other+"/s/message", "").want(401)
	consumer.call("PUT", "/admin/v2/persistent/public/default/mine/subscription/own", "").want(204)
	consumer.call("PUT", "/admin/v2/persistent/public/default/other/subscription/own", "").want(403)
	consumer.call("DELETE", "/admin/v2/persistent/public/default/mine", "").want(403)

	list := `{"kind":"StreamTopicList","data":[{"kind":"StreamTopic","topic_name":"mine","is_internal":false,"partitions_count":1}]}`
	producer.call("GET", "/rest-stream/admin/v1/topics", "").want(200).is(list)
	producer.call("GET", "/admin/v2/persistent/public/default", "").want(200).is(`["persistent://public/default/mine"]`)
}

func TestPermissionsOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	w.ready("u", 0)
	app := w.as(w.account("app"))
	app.call("POST", topic+"/message", "x").want(401)
	w.call("POST", "/admin/v2/persistent/public/default/t/permissions/"+w.principal("app"), `["produce"]`).want(204)
	app.call("POST", topic+"/message", "x").want(201)
	app.call("POST", topic+"/s/message", "").want(401)
	app.call("POST", root+"public/default/u/message", "x").want(401)
	w.call("POST", "/admin/v2/namespaces/public/default/permissions/"+w.principal("app"), `["consume"]`).want(204)
	app.call("POST", topic+"/s/message", "").want(200)
	app.call("PUT", "/admin/v2/persistent/public/default/t/subscription/own", "").want(204)
	app.call("PUT", "/admin/v2/persistent/public/default/new/subscription/own", "").want(204)
	w.call("DELETE", "/admin/v2/namespaces/public/default/permissions/"+w.principal("app"), "").want(204)
	app.call("POST", topic+"/s/message", "").want(401)

	// A tenant's administrators rule what is in it, and nothing else.
	ruler := w.as(w.account("ruler"))
	w.call("PUT", "/admin/v2/tenants/kingdom", `{"adminRoles":["`+w.principal("ruler")+`"],"allowedClusters":["prod"]}`).want(204)
	ruler.call("PUT", "/admin/v2/namespaces/kingdom/court", "").want(204)
	ruler.call("PUT", "/admin/v2/persistent/kingdom/court/t", "").want(204)
	ruler.call("POST", root+"kingdom/court/t/message", "x").want(201)
	ruler.call("DELETE", "/admin/v2/tenants/kingdom", "").want(403)
	ruler.call("PUT", "/admin/v2/persistent/public/default/x", "").want(403)

	// The same name in another organization is somebody else.
	alien, _ := w.identity.Account("elsewhere", "alien")
	name := w.identity.Issuer.PrincipalName("elsewhere", "alien")
	w.call("POST", "/admin/v2/namespaces/public/default/permissions/"+name, `["produce","consume"]`).want(204)
	w.as(w.identity.Token(alien, identity.InstanceAudience(organization, instance))).call("POST", topic+"/message", "x").want(401)
}

func TestSchemaUpdatesByAdministratorsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	w.ready("t", 0)
	w.bind("producer", "topic-producer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "t"})
	producer := w.as(w.account("producer"))
	w.call("POST", "/admin/v2/namespaces/public/default/isAllowAutoUpdateSchema", "false").want(204)
	producer.call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).want(403)
	w.call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).want(200)
	producer.call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).want(200)
}

func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	w.call("PUT", "/admin/v2/persistent/public/default/t", "").want(204)
	if got := w.log.last(); got.Decision != audit.Allowed || got.Resource != "topics" || got.Verb != "create" || got.By != string(access.ByAdmin) ||
		got.Organization != organization || got.Principal != w.principal("boss") || got.RequestID == "" {
		t.Errorf("audit record %+v", got)
	}
	before := len(w.log.records)
	w.call("GET", "/admin/v2/persistent/public/default", "").want(200)
	w.call("POST", root+"public/default/t/message", "x").want(201)
	if len(w.log.records) != before {
		t.Errorf("reading and producing left %d records", len(w.log.records)-before)
	}
	w.call("PUT", "/admin/v2/persistent/public/default/t", "").want(409)
	if got := w.log.last(); got.Status != 409 || got.Decision != audit.Allowed {
		t.Errorf("audit record of a failure %+v", got)
	}
}
