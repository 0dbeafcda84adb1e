package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"freshet.dev/client"
)

// broker is a server without a network that can be unreachable. A whole receive loop runs with it in a synctest
// bubble, in which a leaked goroutine fails the test.
type broker struct {
	mu          sync.Mutex
	unreachable bool
	reject      string // "extend": extending a lease fails with 409; "ack": acknowledging fails with 404
	waiting     []string
	leased      map[string]time.Time // when the lease expires
	acked       map[string]bool
	nacks       int
	calls       map[string]int
	latency     time.Duration // of the response to a poll
	unnoticed   int           // polls that the client has canceled, and the broker still serves
}

func newBroker(ids ...string) *broker {
	return &broker{waiting: ids, leased: map[string]time.Time{}, acked: map[string]bool{}, calls: map[string]int{}}
}

func (b *broker) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *broker) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unreachable {
		return nil, errors.New("connection reset by peer")
	}
	var body struct {
		MaxMessages      int      `json:"maxMessages"`
		TimeoutMillis    int64    `json:"timeoutMillis"`
		AckTimeoutMillis int64    `json:"ackTimeoutMillis"`
		MessageIDs       []string `json:"messageIds"`
	}
	if text, err := io.ReadAll(r.Body); err != nil {
		return nil, err
	} else if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	call := r.Method + r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
	b.calls[call]++
	recorder := httptest.NewRecorder()
	until := time.Now().Add(time.Duration(body.AckTimeoutMillis) * time.Millisecond)
	switch call {
	case "POST/messages":
		b.consume(r.Context(), recorder, body.MaxMessages, time.Duration(body.TimeoutMillis)*time.Millisecond, until)
		if err := r.Context().Err(); err != nil {
			return nil, err // what the broker has leased does not reach the client
		}
	case "PUT/messages":
		if b.reject == "ack" {
			recorder.WriteHeader(http.StatusNotFound)
			break
		}
		for _, id := range body.MessageIDs {
			b.acked[id] = true
			delete(b.leased, id)
		}
	case "POST/extend":
		if b.reject == "extend" {
			recorder.WriteHeader(http.StatusConflict)
			break
		}
		for _, id := range body.MessageIDs {
			b.leased[id] = until
		}
	case "POST/nack":
		b.nacks += len(body.MessageIDs)
		if b.unnoticed == 0 {
			for _, id := range body.MessageIDs {
				delete(b.leased, id)
			}
			b.waiting = append(b.waiting, body.MessageIDs...)
		} // otherwise the broker leases the messages to a canceled poll
	}
	return recorder.Result(), nil
}

// consume is called with mu held, and releases it while it waits for a message.
func (b *broker) consume(ctx context.Context, w http.ResponseWriter, n int, wait time.Duration, until time.Time) {
	if len(b.waiting) == 0 {
		b.pause(ctx, wait)
	}
	b.pause(ctx, b.latency)
	n = min(n, len(b.waiting))
	var list []string
	for _, id := range b.waiting[:n] {
		b.leased[id] = until
		list = append(list, fmt.Sprintf(`{"messageId":%q,"messageStringId":"1:2:-1:0","payload":"dg=="}`, id))
	}
	b.waiting = b.waiting[n:]
	_, _ = fmt.Fprintf(w, `{"messages":[%s]}`, strings.Join(list, ","))
}

// pause is called with mu held, and releases it for d or until the client cancels the call. The broker
// notices that a second later.
func (b *broker) pause(ctx context.Context, d time.Duration) {
	b.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	b.mu.Lock()
	if ctx.Err() != nil {
		b.unnoticed++
		time.AfterFunc(time.Second, func() { b.set(func() { b.unnoticed-- }) })
	}
}

func (b *broker) subscription(t *testing.T) *client.Subscription {
	return newClient(t, client.Config{Transport: b}).Topic("t").Subscription("s")
}

func TestOutageIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker("a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		count := 0
		for msg, err := range b.subscription(t).Messages(ctx) {
			if err != nil {
				t.Fatalf("got %v, want the loop to retry until the server is back", err)
			}
			msg.Ack()
			switch count++; count {
			case 1:
				b.set(func() { b.unreachable = true })
				time.AfterFunc(10*time.Minute,
					func() { b.set(func() { b.unreachable, b.waiting = false, []string{"b"} }) })
			case 2:
				cancel()
			}
		}
		if count != 2 || !b.acked["a"] || !b.acked["b"] {
			t.Errorf("got %d messages and acknowledgements of %v, want a and b", count, b.acked)
		}
	})
}

func TestUnreachableAtStartIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.unreachable = true
		begin := time.Now()
		for _, err := range b.subscription(t).Messages(t.Context()) {
			if !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
		}
		if waited := time.Since(begin); waited > 10*time.Second {
			t.Errorf("the error came after %s, want at most 10 s", waited)
		}
	})
}

func TestLeasesAreExtended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker("a", "b", "c")
		sub := b.subscription(t)
		for msg, err := range sub.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for range 600 { // half a second each
				time.Sleep(500 * time.Millisecond)
				b.set(func() {
					for id, until := range b.leased {
						if left := time.Until(until); left < 10*time.Second {
							t.Fatalf("%s: %s left of its lease of 30 s", id, left)
						}
					}
				})
			}
			msg.Ack()
			break
		}
		b.set(func() {
			if calls := b.calls["POST/extend"]; calls > 40 {
				t.Errorf("%d calls to extend leases of 30 s for 300 s, want at most 40", calls)
			}
			if len(b.acked) != 1 || b.nacks != 2 {
				t.Errorf("got %d acknowledged and %d returned, want 1 and 2", len(b.acked), b.nacks)
			}
		})
	})
}

func TestLostLeaseIsReported(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"refused", "away"} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker("a")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := b.subscription(t).Handle(ctx, 2, func(ctx context.Context, _ *client.Delivery) error {
					b.set(func() { b.unreachable, b.reject = why == "away", "extend" })
					begin := time.Now()
					<-ctx.Done()
					if held := time.Since(begin); held > 36*time.Second {
						t.Errorf("the context ended after %s, want at most 36 s for a lease of 30 s", held)
					}
					b.set(func() { b.unreachable = false })
					cancel()
					return nil // acknowledges the message although its lease expired
				})
				if err != nil || !b.acked["a"] {
					t.Errorf("got %v, acknowledged %v, want a late acknowledgement", err, b.acked)
				}
			})
		})
	}
}

func TestRejectedAckEndsTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker("a")
		b.reject = "ack"
		var last error
		for msg, err := range b.subscription(t).Messages(t.Context()) {
			if last = err; err == nil {
				msg.Ack()
			}
		}
		if !errors.Is(last, client.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", last)
		}
	})
}

func TestHeldMessagesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 50 {
			ids = append(ids, fmt.Sprint("m", i))
		}
		b := newBroker(ids...)
		sub := b.subscription(t)
		sub.ReceiveOptions.MaxHeld = 7
		count := 0
		for msg, err := range sub.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			b.set(func() {
				if len(b.leased) > 7 {
					t.Errorf("%d messages on lease, want at most 7", len(b.leased))
				}
			})
			if err := msg.AckWait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if count++; count == 50 {
				break
			}
		}
	})
}

// TestLeavingTheLoopReturnsEveryMessage leaves the loop at each moment of a poll. No message may stay leased: the
// broker leases messages that are returned too early to the canceled poll.
func TestLeavingTheLoopReturnsEveryMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages, maxHeld int
		latency           time.Duration
	}{
		"the broker has no more messages": {10, 100, 0},
		"the broker has more messages":    {50, 10, 0},
		"a response is on its way":        {50, 10, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var ids []string
				for i := range c.messages {
					ids = append(ids, fmt.Sprint("m", i))
				}
				b := newBroker(ids...)
				b.latency = c.latency
				sub := b.subscription(t)
				sub.ReceiveOptions.MaxHeld = c.maxHeld
				count := 0
				for msg, err := range sub.Messages(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if err := msg.AckWait(t.Context()); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // the next poll has begun
					if count++; count == 3 {
						break
					}
				}
				b.set(func() {
					if len(b.leased) != 0 || len(b.acked) != 3 || len(b.waiting) != c.messages-3 {
						t.Errorf("got %d leased, %d acknowledged and %d available messages, want 0, 3 and %d",
							len(b.leased), len(b.acked), len(b.waiting), c.messages-3)
					}
				})
			})
		})
	}
}

func TestLeavingTheLoopIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker("a", "b", "c")
		sub := b.subscription(t)
		sub.ReceiveOptions.MaxHeld = 2
		var begin time.Time
		for msg, err := range sub.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.set(func() { b.latency = time.Hour })
			if err := msg.AckWait(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			begin = time.Now()
			break
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("leaving the loop took %s while a poll had no response, want 10 s", took)
		}
	})
}

// TestCallsOfAQuietSubscription counts the polls: one waits at the server for each message, and none is made in
// between.
func TestCallsOfAQuietSubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker("m0")
		count := 0
		for msg, err := range b.subscription(t).Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			msg.Ack()
			if count++; count == 10 {
				break
			}
			b.set(func() { b.waiting = append(b.waiting, fmt.Sprint("m", count)) })
		}
		if calls := b.calls["POST/messages"]; calls != 10 {
			t.Errorf("got %d polls for 10 messages, want 10", calls)
		}
	})
}

func TestAckAfterTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker("a")
		var kept *client.Delivery
		for msg, err := range b.subscription(t).Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			kept = msg
			break
		}
		if kept.Ack(); !b.acked["a"] {
			t.Error("Ack after the loop sent no acknowledgement")
		}
		kept.Ack()
		kept.Nack(0)
		if b.calls["PUT/messages"] != 1 || b.nacks != 0 {
			t.Errorf("settled twice: %d acknowledgements, %d nacks, want 1 and 0", b.calls["PUT/messages"], b.nacks)
		}
	})
}

func TestAcksShareCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 500 {
			ids = append(ids, fmt.Sprint("m", i))
		}
		b := newBroker(ids...)
		count := 0
		for msg, err := range b.subscription(t).Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			msg.Ack()
			if count++; count == 500 {
				break
			}
		}
		if calls := b.calls["PUT/messages"]; len(b.acked) != 500 || calls > 5 {
			t.Errorf("%d acknowledged by %d calls, want 500 by at most 5", len(b.acked), calls)
		}
	})
}
