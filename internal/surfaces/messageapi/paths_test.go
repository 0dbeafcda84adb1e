package messageapi_test

import (
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	for _, name := range []string{
		"message", "persistent", "a%2Fb", "a%20b", "gr%C3%B6%C3%9Fe", "a%252Fb", "tail",
		"x:y=z", "%E2%82%AC",
	} {
		path := "/admin/v2/persistent/public/default/" + name
		w.Call("PUT", path, "").WantStatus(204)
		w.Call("PUT", path+"/subscription/message", "").WantStatus(204)
		for _, domain := range []string{"", "persistent/"} {
			topic := root + domain + "public/default/" + name
			w.Call("POST", topic+"/message", name).WantStatus(201)
			got := w.Call("POST", topic+"/message/message", "").WantStatus(200).WantBody(name)
			w.Call("PUT", topic+"/message/message/", got.MessageID()).WantStatus(204)
		}
	}
	for path, status := range map[string]int{
		"public/default/message":                                    404, // too short
		"persistent/public/default/message":                         404, // no topic
		"public/default/t/s/message/x":                              404,
		"public/default/t/s/messages/nack":                          404,
		"public/default/t":                                          404,
		"":                                                          404,
		"non-persistent/public/default/t/message":                   400,
		"public/default/t%zz/message":                               400,
		"public/default/%20/message":                                400,
		"public/default/%00/message":                                400,
		"pub%20lic/default/t/message":                               400,
		"public/def%2Fault/t/message":                               400,
		"public/default/nothing/message":                            404,
		"public/nothing/t/message":                                  404,
		"nobody/default/t/message":                                  404,
		"public/default/" + strings.Repeat("x", 600) + "/message":   400,
		"public/default/t/" + strings.Repeat("s", 300) + "/message": 400,
		"a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/message":                   404,
	} {
		if strings.Contains(path, "%zz") {
			continue // net/http's client cannot send such a request
		}
		if r := w.Call("POST", root+path, "x"); r.Status != status {
			t.Errorf("%.60s: got status %d, want %d: %s", path, r.Status, status, r.Body)
		}
	}
	w.Call("GET", root+"public/default/t/message", "").WantStatus(405).WantHeaders("Allow", "POST")
	w.Call("DELETE", root+"public/default/t/s/message", "").WantStatus(405).WantHeaders("Allow", "POST, PUT")
	w.Call("PATCH", "/admin/v2/tenants/public", "").WantStatus(405).WantHeaders("Allow", "DELETE, GET, POST, PUT")
	w.Call("GET", "/admin/v2/unknown", "").WantStatus(404)
	w.Call("GET", "/admin/v3/tenants", "").WantStatus(404)
	w.Call("GET", "/rest-stream/admin/v1/nothing", "").WantStatus(404)
}
