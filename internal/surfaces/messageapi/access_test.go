package messageapi_test

import (
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
)

func TestInvalidTokens(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	stranger, _ := w.Identity.Account("elsewhere", "stranger", func(a *identity.Account) { a.Admin = true })
	other, _ := w.Identity.Account(organization, "other", func(a *identity.Account) { a.Admin = true })
	for name, token := range map[string]string{
		"none":           "",
		"garbage":        "garbage",
		"other audience": w.Identity.Token(other, identity.InstanceAudience(organization, "elsewhere")),
		"other company":  w.Identity.Token(stranger, identity.InstanceAudience("elsewhere", instance)),
	} {
		t.Run(name, func(t *testing.T) {
			as := w.as(token)
			as.Call("POST", topic+"/message", "x").WantStatus(401)
			as.Call("POST", topic+"/s/message", "").WantStatus(401)
			as.Call("PUT", topic+"/s/message", "x").WantStatus(401)
			as.Call("GET", topic+"/tail", "").WantStatus(401)
			as.Call("GET", "/admin/v2/tenants", "").WantStatus(401)
			as.Call("PUT", "/admin/v2/persistent/public/default/t/subscription/z", "").WantStatus(401)
			as.Call("GET", "/rest-stream/admin/v1/topics", "").WantStatus(401)
		})
	}
	// An administrator of another organization has a token for this instance.
	foreign := w.as(w.Identity.Token(stranger, identity.InstanceAudience(organization, instance)))
	foreign.Call("POST", topic+"/message", "x").WantStatus(401)
	foreign.Call("GET", "/admin/v2/tenants", "").WantStatus(403)
}

func TestWithoutAnyRole(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	nobody := w.as(w.Account("nobody"))
	r := nobody.Call("POST", topic+"/message", "x").WantStatus(401)
	if !strings.Contains(r.Body, "messaging.topics.produce") ||
		!strings.Contains(r.Header.Get("WWW-Authenticate"), "insufficient_scope") {
		t.Errorf("got body %s, challenge %s, want the missing permission and insufficient_scope", r.Body,
			r.Header.Get("WWW-Authenticate"))
	}
	if got := w.Log.Last(); got.Decision != audit.Denied || got.Permission != "messaging.topics.produce" ||
		got.Status != 401 ||
		got.Principal != w.Principal("nobody") || !strings.Contains(got.Scope, "topic/t") {
		t.Errorf("audit record: got %+v, want a denial of messaging.topics.produce on topic t with status 401", got)
	}
	nobody.Call("POST", topic+"/s/message", "").WantStatus(401)
	nobody.Call("PUT", topic+"/s/message", "x").WantStatus(401)
}

func TestRolesOfBindings(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	mine, other := w.CreateTopic("mine", 0), w.CreateTopic("other", 0)
	w.Bind("producer", "topic-producer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"})
	w.Bind("consumer", "topic-consumer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"})
	producer, consumer := w.as(w.Account("producer")), w.as(w.Account("consumer"))

	producer.Call("POST", mine+"/message", "x").WantStatus(201)
	producer.Call("POST", other+"/message", "x").WantStatus(401)
	producer.Call("POST", mine+"/s/message", "").WantStatus(401)
	producer.Call("POST", "/admin/v2/schemas/public/default/mine/schema",
		`{"type":"STRING","schema":""}`).WantStatus(200)
	got := consumer.Call("POST", mine+"/s/message", "").WantStatus(200)
	consumer.Call("PUT", mine+"/s/message", got.MessageID()).WantStatus(204)
	consumer.Call("POST", mine+"/message", "x").WantStatus(401)
	consumer.Call("POST", other+"/s/message", "").WantStatus(401)
	consumer.Call("PUT", "/admin/v2/persistent/public/default/mine/subscription/own", "").WantStatus(204)
	consumer.Call("PUT", "/admin/v2/persistent/public/default/other/subscription/own", "").WantStatus(403)
	consumer.Call("DELETE", "/admin/v2/persistent/public/default/mine", "").WantStatus(403)

	list := `{"kind":"StreamTopicList","data":[` +
		`{"kind":"StreamTopic","topic_name":"mine","is_internal":false,"partitions_count":1}]}`
	producer.Call("GET", "/rest-stream/admin/v1/topics", "").WantStatus(200).WantBody(list)
	producer.Call("GET", "/admin/v2/persistent/public/default",
		"").WantStatus(200).WantBody(`["persistent://public/default/mine"]`)
}

func TestPermissionsOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.CreateTopic("u", 0)
	app := w.as(w.Account("app"))
	app.Call("POST", topic+"/message", "x").WantStatus(401)
	w.Call("POST", "/admin/v2/persistent/public/default/t/permissions/"+w.Principal("app"),
		`["produce"]`).WantStatus(204)
	app.Call("POST", topic+"/message", "x").WantStatus(201)
	app.Call("POST", topic+"/s/message", "").WantStatus(401)
	app.Call("POST", root+"public/default/u/message", "x").WantStatus(401)
	w.Call("POST", "/admin/v2/namespaces/public/default/permissions/"+w.Principal("app"), `["consume"]`).WantStatus(204)
	app.Call("POST", topic+"/s/message", "").WantStatus(200)
	app.Call("PUT", "/admin/v2/persistent/public/default/t/subscription/own", "").WantStatus(204)
	// The permission to consume does not include creating topics.
	app.Call("PUT", "/admin/v2/persistent/public/default/new/subscription/own", "").WantStatus(403)
	w.Call("PUT", "/admin/v2/persistent/public/default/new/subscription/own", "").WantStatus(204)
	w.Call("DELETE", "/admin/v2/namespaces/public/default/permissions/"+w.Principal("app"), "").WantStatus(204)
	app.Call("POST", topic+"/s/message", "").WantStatus(401)

	// A tenant's administrators manage the resources in it, and nothing else.
	ruler := w.as(w.Account("ruler"))
	w.Call("PUT", "/admin/v2/tenants/kingdom", `{"adminRoles":["`+w.Principal("ruler")+
		`"],"allowedClusters":["prod"]}`).WantStatus(204)
	ruler.Call("PUT", "/admin/v2/namespaces/kingdom/court", "").WantStatus(204)
	ruler.Call("PUT", "/admin/v2/persistent/kingdom/court/t", "").WantStatus(204)
	ruler.Call("POST", root+"kingdom/court/t/message", "x").WantStatus(201)
	ruler.Call("DELETE", "/admin/v2/tenants/kingdom", "").WantStatus(403)
	ruler.Call("PUT", "/admin/v2/persistent/public/default/x", "").WantStatus(403)

	// A role of another organization grants nothing.
	alien, _ := w.Identity.Account("elsewhere", "alien")
	name := w.Identity.Issuer.PrincipalName("elsewhere", "alien")
	w.Call("POST", "/admin/v2/namespaces/public/default/permissions/"+name, `["produce","consume"]`).WantStatus(204)
	w.as(w.Identity.Token(alien, identity.InstanceAudience(organization, instance))).Call("POST", topic+"/message",
		"x").WantStatus(401)
}
