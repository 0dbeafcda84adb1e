package messageapi_test

import (
	"fmt"
	"testing"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

// withExpiredLease returns a world in which the lease of one consumer has expired and another
// consumer has the message. late and holder are the two deliveries.
func withExpiredLease(t *testing.T) (w *harness, topic string, late, holder *brokertest.Response) {
	t.Helper()
	w = newHarness(t, messaging.Options{Limits: messaging.Limits{MinLease: time.Millisecond}})
	topic = w.CreateTopic("t", 0)
	w.Call("POST", topic+"/message", "x").WantStatus(201)
	late = w.Call("POST", topic+"/s/message", `{"ackTimeoutMillis":1}`).WantStatus(200)
	holder = w.Call("POST", topic+"/s/message", `{"timeoutMillis":20000}`).WantStatus(200).WantHeaders(
		"X-Msg-Redelivery-Count", "1")
	return w, topic, late, holder
}

func TestLateConsumerDoesNotTouchTheNextLease(t *testing.T) {
	t.Parallel()
	w, topic, late, holder := withExpiredLease(t)
	for form, id := range map[string]string{
		"base64": late.MessageID(),
		"string": late.Header.Get("X-Msg-Message-String-Id"),
	} {
		for call, body := range map[string]string{
			"nack":   fmt.Sprintf(`{"messageId":%q}`, id),
			"extend": fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":1}`, id),
		} {
			if r := w.Call("POST", topic+"/s/message/"+call, body); r.Status != 409 {
				t.Errorf("late %s by the %s id: got status %d %s, want 409", call, form, r.Status, r.Body)
			}
		}
	}
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204) // the holder still has the lease
	w.Call("POST", topic+"/s/message/extend",
		fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":60000}`, holder.MessageID())).WantStatus(204)
	w.Call("POST", topic+"/s/message/nack", holder.MessageID()).WantStatus(204)
	w.Call("POST", topic+"/s/message/nack", holder.MessageID()).WantStatus(409)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(200).WantHeaders("X-Msg-Redelivery-Count", "2")
}

func TestLateAcknowledgementWins(t *testing.T) {
	t.Parallel()
	w, topic, late, holder := withExpiredLease(t)
	w.Call("PUT", topic+"/s/message", late.MessageID()).WantStatus(204)
	w.Call("PUT", topic+"/s/message", holder.MessageID()).WantStatus(204)
	w.Call("POST", topic+"/s/message/nack", holder.MessageID()).WantStatus(409)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
}

func TestDeletedSubscriptionEndsItsConsumers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ remove, reason string }{
		"subscription": {"/subscription/s?force=true", messaging.ErrNoSubscription.Error()},
		"topic":        {"?force=true", messaging.ErrNoTopic.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t, messaging.Options{})
			topic, path := w.CreateTopic("t", 0), "/admin/v2/persistent/public/default/t"
			w.Call("POST", topic+"/message", "x").WantStatus(201)
			// One stream has no credit left, the other waits for messages.
			full, _ := w.listen(t.Context(), topic+"/s/messages?credits=1")
			next(t, full)
			idle, _ := w.listen(t.Context(), topic+"/s/messages")
			responses := make(chan *brokertest.Response, 2)
			for _, call := range []string{"/s/message", "/s/messages"} {
				go func() { responses <- w.Call("POST", topic+call, `{"timeoutMillis":60000}`) }()
			}
			eventually(t, "the consumers wait", func() bool { return w.waiting("t") == 3 })
			w.Call("DELETE", path+tc.remove, "").WantStatus(204)
			for range 2 {
				select {
				case r := <-responses:
					if r.Status != 404 {
						t.Errorf("%s: got status %d %s, want 404", r.Request, r.Status, r.Body)
					}
				case <-time.After(10 * time.Second):
					t.Error("consumer still waits after 10s, want an immediate 404")
				}
			}
			for what, events := range map[string]<-chan event{"idle stream": idle, "stream without credit": full} {
				select {
				case e, open := <-events:
					if !open || e.Name != "error" || e.Data.Reason != tc.reason {
						t.Errorf("%s: got %+v, want an error with %q", what, e, tc.reason)
					}
				case <-time.After(10 * time.Second):
					t.Errorf("%s: got no event within 10s, want an immediate error event", what)
				}
			}
		})
	}
}
