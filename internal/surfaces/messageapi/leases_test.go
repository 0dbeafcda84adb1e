package messageapi_test

import (
	"fmt"
	"testing"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

// lapsed returns a world in which the lease of one consumer has expired and another
// consumer has the message. late and holder are the two deliveries.
func lapsed(t *testing.T) (w *world, topic string, late, holder *brokertest.Reply) {
	t.Helper()
	w = newWorld(t, messaging.Options{Limits: messaging.Limits{MinLease: time.Millisecond}})
	topic = w.Ready("t", 0)
	w.Call("POST", topic+"/message", "x").Want(201)
	late = w.Call("POST", topic+"/s/message", `{"ackTimeoutMillis":1}`).Want(200)
	holder = w.Call("POST", topic+"/s/message", `{"timeoutMillis":20000}`).Want(200).Says("X-Msg-Redelivery-Count", "1")
	return w, topic, late, holder
}

func TestLateConsumerDoesNotTouchTheNextLease(t *testing.T) {
	t.Parallel()
	w, topic, late, holder := lapsed(t)
	for form, id := range map[string]string{"base64": late.ID(), "string": late.Header.Get("X-Msg-Message-String-Id")} {
		for call, body := range map[string]string{
			"nack":   fmt.Sprintf(`{"messageId":%q}`, id),
			"extend": fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":1}`, id),
		} {
			if r := w.Call("POST", topic+"/s/message/"+call, body); r.Status != 409 {
				t.Errorf("late %s by the %s id: got status %d %s, want 409", call, form, r.Status, r.Body)
			}
		}
	}
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).Want(204) // the holder still has the lease
	w.Call("POST", topic+"/s/message/extend",
		fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":60000}`, holder.ID())).Want(204)
	w.Call("POST", topic+"/s/message/nack", holder.ID()).Want(204)
	w.Call("POST", topic+"/s/message/nack", holder.ID()).Want(409)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).Want(200).Says("X-Msg-Redelivery-Count", "2")
}

func TestLateAcknowledgementWins(t *testing.T) {
	t.Parallel()
	w, topic, late, holder := lapsed(t)
	w.Call("PUT", topic+"/s/message", late.ID()).Want(204)
	w.Call("PUT", topic+"/s/message", holder.ID()).Want(204)
	w.Call("POST", topic+"/s/message/nack", holder.ID()).Want(409)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).Want(204)
}

func TestDeletedSubscriptionEndsItsConsumers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ remove, reason string }{
		"subscription": {"/subscription/s?force=true", messaging.ErrNoSubscription.Error()},
		"topic":        {"?force=true", messaging.ErrNoTopic.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, messaging.Options{})
			topic, path := w.Ready("t", 0), "/admin/v2/persistent/public/default/t"
			w.Call("POST", topic+"/message", "x").Want(201)
			// One stream has no credit left, the other waits for messages.
			full, _ := w.listen(t.Context(), topic+"/s/messages?credits=1")
			next(t, full)
			idle, _ := w.listen(t.Context(), topic+"/s/messages")
			answers := make(chan *brokertest.Reply, 2)
			for _, call := range []string{"/s/message", "/s/messages"} {
				go func() { answers <- w.Call("POST", topic+call, `{"timeoutMillis":60000}`) }()
			}
			until(t, "the consumers wait", func() bool { return w.waiting("t") == 3 })
			w.Call("DELETE", path+tc.remove, "").Want(204)
			for range 2 {
				select {
				case r := <-answers:
					if r.Status != 404 {
						t.Errorf("%s: got status %d %s, want 404", r.What, r.Status, r.Body)
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
