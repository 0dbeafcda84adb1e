package adminapi_test

import (
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

func TestWithoutAnyRole(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	nobody := w.as(w.Account("nobody"))
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
		nobody.Call(s.method, "/admin/v2/"+s.path, s.body).WantStatus(s.status)
	}
}

func TestSchemaUpdatesByAdministratorsOnly(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	w.Bind("producer", "topic-producer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "t"})
	producer := w.as(w.Account("producer"))
	w.Call("POST", "/admin/v2/namespaces/public/default/isAllowAutoUpdateSchema", "false").WantStatus(204)
	producer.Call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).WantStatus(403)
	w.Call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).WantStatus(200)
	producer.Call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).WantStatus(200)
}

// TestContractsNeedUpdate checks that a producer can neither set nor remove the contract of its topic.
func TestContractsNeedUpdate(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	const path = "/admin/v2/persistent/public/default/t/require"
	only := access.Restriction{Tenant: "public", Namespace: "default", Topic: "t"}
	w.Bind("producer", "topic-producer", only)
	producer, nobody := w.as(w.Account("producer")), w.as(w.Account("nobody"))
	w.Call("POST", path, `"size > 1"`).WantStatus(204)
	for _, caller := range []*harness{producer, nobody} {
		caller.Call("POST", path, `"size > 0"`).WantStatus(403)
		caller.Call("PUT", path, `"size >"`).WantStatus(403)
		caller.Call("DELETE", path, "").WantStatus(403)
	}
	nobody.Call("GET", path, "").WantStatus(403)
	w.Call("GET", path, "").WantStatus(200)
	producer.Call("POST", root+"public/default/t/message", "x").WantStatus(400)
}

func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.Call("PUT", "/admin/v2/persistent/public/default/t", "").WantStatus(204)
	if got := w.Log.Last(); got.Decision != audit.Allowed || got.Resource != "topics" || got.Verb != "create" ||
		got.By != string(access.ByAdmin) ||
		got.Organization != brokertest.Organization || got.Principal != w.Principal("boss") || got.RequestID == "" {
		t.Errorf("audit record: got %+v, want an allowed create of topics by the administrator", got)
	}
	before := len(w.Log.Records)
	w.Call("GET", "/admin/v2/persistent/public/default", "").WantStatus(200)
	w.Call("POST", root+"public/default/t/message", "x").WantStatus(201)
	if len(w.Log.Records) != before {
		t.Errorf("reading and producing wrote %d audit records, want none", len(w.Log.Records)-before)
	}
	w.Call("PUT", "/admin/v2/persistent/public/default/t", "").WantStatus(409)
	if got := w.Log.Last(); got.Status != 409 || got.Decision != audit.Allowed {
		t.Errorf("audit record of a failure: got %+v, want status 409, allowed", got)
	}
}
