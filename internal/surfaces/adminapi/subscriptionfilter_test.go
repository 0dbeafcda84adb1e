package adminapi_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

const filterPath = "/admin/v2/persistent/public/default/t/subscription/"

func TestSubscriptionFilter(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	w.Call("PUT", filterPath+"own", `{"position":"earliest","filter":"payload > 1","ackTimeoutMillis":5000}`).
		WantStatus(204)
	w.Call("GET", filterPath+"own/filter", "").WantStatus(200).WantBody(`{"filter":"payload > 1"}`)
	w.Call("GET", filterPath+"own/properties", "").WantBody(`{"ackTimeoutMillis":"5000","filter":"payload > 1"}`)
	w.Call("PUT", filterPath+"own/filter", `{"filter":"payload > 2"}`).WantStatus(204)
	w.Call("GET", filterPath+"own/properties", "").WantBody(`{"ackTimeoutMillis":"5000","filter":"payload > 2"}`)
	for _, body := range []string{
		"", `{}`, `{"filter":null}`, `{"filter":7}`, `{"filter":"payload >"}`, `{"filter":"payload + 1"}`,
		`{"filter":"` + strings.Repeat("(", 5000) + `"}`,
	} {
		if r := w.Call("PUT", filterPath+"own/filter", body); r.Status != 400 {
			t.Errorf("%.30s: got %d %s, want 400", body, r.Status, r.Body)
		}
	}
	r := w.Call("PUT", filterPath+"other", `{"filter":"payload.total >"}`).WantStatus(400)
	if !strings.Contains(r.Body, "1:16") || !strings.Contains(r.Body, "Syntax error") {
		t.Errorf("got %s, want the position and the reason", r.Body)
	}
	w.Call("GET", filterPath+"other/filter", "").WantStatus(404)
	w.Call("PUT", filterPath+"other/filter", `{"filter":""}`).WantStatus(404)
	w.Call("GET", filterPath+"own/filter", "").WantBody(`{"filter":"payload > 2"}`)
	for i := range 5 {
		w.Call("POST", root+"public/default/t/message", fmt.Sprint(i)).WantStatus(201)
	}
	w.Call("POST", root+"public/default/t/own/message", "").WantStatus(200).WantBody("3")
	stats := w.Call("GET", "/admin/v2/persistent/public/default/t/stats", "").WantStatus(200).Body
	for _, want := range []string{
		`"msgBacklog":2`, `"filter":"payload > 2"`, `"filterProcessedMsgCount":4`, `"filterAcceptedMsgCount":1`,
		`"filterRejectedMsgCount":3`, `"filterFailedMsgCount":0`,
	} {
		if !strings.Contains(stats, want) {
			t.Errorf("got %s, want %s in it", stats, want)
		}
	}
	w.Call("PUT", filterPath+"own/filter", `{"filter":""}`).WantStatus(204)
	w.Call("GET", filterPath+"own/filter", "").WantBody(`{"filter":""}`)
	w.Call("GET", filterPath+"own/properties", "").WantBody(`{"ackTimeoutMillis":"5000"}`)
}

// TestAttackSubscriptionFilter: a caller that may change subscriptions and see statistics, but read no messages,
// cannot set a filter: its counts would show what is in the messages.
func TestAttackSubscriptionFilter(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for role, want := range map[string]int{
		"cluster-readonly": 403, "topic-producer": 403, "cluster-operator": 403,
		"topic-consumer": 204, "topic-owner": 204,
	} {
		w := newHarness(t, messaging.Options{})
		w.CreateTopic("t", 0)
		w.Call("PUT", filterPath+"own", `{"filter":"size > 1","properties":{"a":"b"}}`).WantStatus(204)
		w.Bind("mallory", role, access.Restriction{})
		mallory := w.as(w.Account("mallory"))
		for _, call := range [][2]string{
			{"own/filter", `{"filter":"payload.secret.startsWith('a')"}`},
			{"own/properties", `{"filter":"payload.secret.startsWith('b')"}`},
			{"new", `{"filter":"payload.secret.startsWith('c')"}`},
		} {
			got := mallory.Call("PUT", filterPath+call[0], call[1])
			if got.Status != want {
				t.Errorf("%s, %s: got %d %s, want %d", role, call[0], got.Status, got.Body, want)
			}
			if want != 403 {
				continue
			}
			attempts++
			if got.Status/100 == 2 {
				successes++
			}
			if r := w.Log.Last(); r.Decision != audit.Denied {
				t.Errorf("%s, %s: got the audit record %+v, want a denial", role, call[0], r)
			}
			w.Call("GET", filterPath+"own/filter", "").WantBody(`{"filter":"size > 1"}`)
		}
		if role == "cluster-operator" { // may change the other settings, and remove the filter
			mallory.Call("PUT", filterPath+"own/properties", `{"filter":"size > 1","a":"c"}`).WantStatus(204)
			mallory.Call("PUT", filterPath+"own/filter", `{"filter":"size > 1"}`).WantStatus(204)
			mallory.Call("PUT", filterPath+"own/filter", `{"filter":""}`).WantStatus(204)
		}
	}
	tally.Attack(t, "setting the filter of a subscription without the permission to consume", attempts, successes)
}
