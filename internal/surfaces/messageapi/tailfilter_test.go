package messageapi_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/test/tally"
)

func TestTailWithFilter(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	var last string
	for i := range 40 {
		last = w.Call("POST", topic+"/message", fmt.Sprintf(`{"n":%d}`, i)).WantStatus(201).MessageID()
	}
	path := topic + "/tail?from=earliest&encoding=text&filter=" + url.QueryEscape(`payload.n == 7 || payload.n > 100`)
	events, _ := w.listen(t.Context(), path)
	if e := next(t, events); e.Name != "message" || e.Data.Payload != `{"n":7}` {
		t.Errorf("got %+v, want the message with n=7", e)
	}
	progress := next(t, events)
	if progress.Name != "progress" || progress.ID != last {
		t.Fatalf("got %+v, want progress after the last message %s", progress, last)
	}
	w.Call("POST", topic+"/message", `{"n":101}`).WantStatus(201)
	if e := next(t, events); e.Data.Payload != `{"n":101}` {
		t.Errorf("got %+v, want the message with n=101", e)
	}
	again, _ := w.listen(t.Context(), path, "Last-Event-ID", progress.ID)
	if e := next(t, again); e.Data.Payload != `{"n":101}` {
		t.Errorf("after the progress: got %+v, want the message with n=101", e)
	}
	// A ticket works for a tail with a filter, too.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticket := w.ticket(topic + "/tail")
	byTicket, _ := w.listen(ctx, path+"&ticket="+ticket, "Authorization", "")
	if e := next(t, byTicket); e.Data.Payload != `{"n":7}` {
		t.Errorf("with a ticket: got %+v, want the message with n=7", e)
	}
	for filter, want := range map[string]string{
		"payload.n >": "ERROR: <input>:1:12",
		"size":        "its type is int",
	} {
		r := w.Call("GET", topic+"/tail?filter="+url.QueryEscape(filter), "").WantStatus(400)
		if !strings.Contains(r.Body, want) {
			t.Errorf("%s: got %s, want %q", filter, r.Body, want)
		}
	}
}

// TestTailCountsFailures: the progress of a tail has the number of failures and the first one.
func TestTailCountsFailures(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	for range 3 {
		w.Call("POST", topic+"/message", `{"n":1}`).WantStatus(201)
	}
	event := w.event(topic + "/tail?from=earliest&filter=payload.other")
	if want := `{"scanned":3,"matched":0,"failed":3,"failure":"no such key: other"}`; event != want {
		t.Errorf("got %s, want %s", event, want)
	}
}

// TestAttackTailFilterWithoutPermission follows a topic with credentials that may not consume it: none of
// the responses may show whether the expression is valid or matches.
func TestAttackTailFilterWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.Call("POST", topic+"/message", `{"secret":1}`).WantStatus(201)
	w.Call("PUT", "/admin/v2/persistent/public/default/t/subscription/s", `"earliest"`)
	attempts, successes := 0, 0
	for _, token := range []string{"", "garbage", w.Account("nobody")} {
		for _, filter := range []string{`payload.secret == 1`, `payload.secret ==`} {
			for path, wants := range map[string][]int{
				topic + "/tail": {401},
				"/admin/v2/persistent/public/default/t/subscription/s/position/1": {401, 403},
			} {
				attempts++
				r := w.as(token).Call("GET", path+"?filter="+url.QueryEscape(filter), "")
				if r.Status != wants[0] && r.Status != wants[len(wants)-1] {
					successes++
					t.Errorf("%s with %s: got %d %s, want %d", path, filter, r.Status, r.Body, wants)
				}
			}
		}
	}
	tally.Attack(t, "tail and peek with a filter without permission to consume", attempts, successes)
}
