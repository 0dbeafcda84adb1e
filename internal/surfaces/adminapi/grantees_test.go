package adminapi_test

import (
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
)

// TestGrantsDoNotDependOnTheAddress: a grant names an account of an organization. It
// stays valid if the server's address in the role name changes.
func TestGrantsDoNotDependOnTheAddress(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]int{
		"app@acme":                      201,
		"app@acme.old.example:8443":     201,
		"app@acme.127.0.0.1:8080":       201,
		"app@acme.":                     201,
		"app":                           401,
		"app@":                          401,
		"app@acme2.old.example:8443":    401,
		"app@elsewhere":                 401,
		"app2@acme":                     401,
		"x.app@acme":                    401,
		"app@elsewhere.acme.old:1":      401,
		"@acme":                         401,
		"other@app@acme":                401,
		"app@acme%20":                   401,
		"app%2Fx@acme.old.example:8443": 401,
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t, messaging.Options{})
			topic := w.CreateTopic("t", 0)
			app := w.as(w.Account("app"))
			for _, of := range []string{
				"/admin/v2/namespaces/public/default",
				"/admin/v2/persistent/public/default/t",
			} {
				app.Call("POST", topic+"/message", "x").WantStatus(401)
				w.Call("POST", of+"/permissions/"+role, `["produce","consume"]`).WantStatus(204)
				app.Call("POST", topic+"/message", "x").WantStatus(want)
				if want == 201 {
					// Another role name of the same account replaces the grant and revokes it.
					w.Call("POST", of+"/permissions/app@acme.new.example", `["consume"]`).WantStatus(204)
					app.Call("POST", topic+"/message", "x").WantStatus(401)
					w.Call("DELETE", of+"/permissions/app@acme", "").WantStatus(204)
					app.Call("POST", topic+"/s/message", "").WantStatus(401)
					w.Call("GET", of+"/permissions", "").WantStatus(200).WantBody("{}")
				}
			}
		})
	}
}

func TestTenantAdministratorsDoNotDependOnTheAddress(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.Call("PUT", "/admin/v2/tenants/kingdom",
		`{"adminRoles":["ruler@acme.old.example:8443"],"allowedClusters":["prod"]}`).WantStatus(204)
	w.as(w.Account("ruler")).Call("PUT", "/admin/v2/namespaces/kingdom/court", "").WantStatus(204)
	w.as(w.Account("jester")).Call("PUT", "/admin/v2/namespaces/kingdom/cellar", "").WantStatus(403)
}

func TestUnknownRolesReturnWarnings(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	w.Account("app")
	for role, want := range map[string]string{
		"app@acme":            "",
		w.Principal("app"):    "",
		"nobody@acme":         "no service account nobody",
		"app@elsewhere":       "to organization elsewhere",
		"some-role-of-pulsar": "names no account",
	} {
		for _, call := range []struct{ method, path, body string }{
			{"POST", "/admin/v2/namespaces/public/default/permissions/" + role, `["produce"]`},
			{"POST", "/admin/v2/persistent/public/default/t/permissions/" + role, `["produce"]`},
			{"POST", "/admin/v2/tenants/public", `{"adminRoles":["` + role + `"],"allowedClusters":["prod"]}`},
		} {
			r := w.Call(call.method, call.path, call.body).WantStatus(204)
			got := r.Header.Get("Warning")
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s: got warning %q, want %q", r.Request, got, want)
			}
			if got != "" && !strings.HasPrefix(got, `299 - "`) {
				t.Errorf("%s: got warning %q, want code 299 and a quoted text", r.Request, got)
			}
		}
	}
}
