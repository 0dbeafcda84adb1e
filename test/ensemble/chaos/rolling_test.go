package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/client"
	"freshet/test/stamp"
)

// retrier makes each call to a random member, and retries it once at another member if
// the first is unavailable: after the Retry-After of the first response, or 100 ms.
type retrier struct {
	t              *testing.T
	clients        []*client.Client
	calls, retried atomic.Int64
	failed         atomic.Int64
	foreign        atomic.Int64 // messages that were delivered under another topic, or damaged

	mu      sync.Mutex
	reasons map[string]int // errors of the first calls, for the test's output
}

// countRetry counts the reason for a retry.
func (r *retrier) countRetry(operation string, err error) {
	reason := "no connection"
	var answered *client.Error
	if errors.As(err, &answered) {
		reason = answered.Message
	}
	r.mu.Lock()
	r.reasons[strings.Fields(operation)[0]+": "+reason]++
	r.mu.Unlock()
}

func (r *retrier) do(ctx context.Context, operation string, call func(*client.Client) error) bool {
	r.calls.Add(1)
	first := rand.IntN(len(r.clients))
	err := call(r.clients[first])
	if err == nil {
		return true
	}
	wait := 100 * time.Millisecond
	var refused *client.Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 {
		wait = refused.RetryAfter
	}
	if !errors.Is(err, client.ErrUnavailable) || !pause(ctx, wait) {
		if ctx.Err() == nil {
			r.failed.Add(1)
			r.t.Logf("%s: %v", operation, err)
		}
		return false
	}
	r.retried.Add(1)
	r.countRetry(operation, err)
	again := call(r.clients[(first+1+rand.IntN(len(r.clients)-1))%len(r.clients)])
	if again != nil && ctx.Err() == nil {
		r.failed.Add(1)
		r.t.Logf("%s: %v; retry: %v", operation, err, again)
	}
	return again == nil
}

// inspect counts a delivered message that is damaged or belongs to another topic.
func (r *retrier) inspect(value []byte, topic string) {
	if _, err := stamp.Check(value, topic, stamp.AnyPartition); err != nil {
		r.foreign.Add(1)
		r.t.Log(err)
	}
}

// TestEnsembleRolling restarts the members gracefully, one after another, under load. No call
// of a client that retries once may fail.
func TestEnsembleRolling(t *testing.T) {
	g := newEnsemble(t, EnsembleOptions{}, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := &retrier{t: t, reasons: make(map[string]int)}
	var err error
	if r.clients, err = clientsOf(g.Clients(), g.Members[0].Token(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	const topics = 6
	for i := range topics {
		topic := r.clients[0].Topic(fmt.Sprintf("rolling-%d", i))
		if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := topic.Subscription("s").Create(ctx, client.SubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	loading, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	for i := range topics {
		name := fmt.Sprintf("rolling-%d", i)
		load.Go(func() {
			for n := 0; pause(loading, 20*time.Millisecond); n++ {
				r.do(loading, "produce to "+name, func(c *client.Client) error {
					value := stamp.Make(name, "rolling", n, 200)
					_, err := c.Topic(name).Produce(loading,
						client.Message{Value: value, IdempotencyKey: fmt.Sprint(n)})
					return err
				})
			}
		})
		load.Go(func() {
			for pause(loading, 20*time.Millisecond) {
				var received []client.Received
				r.do(loading, "consume from "+name, func(c *client.Client) (err error) {
					received, err = c.Topic(name).Subscription("s").Fetch(loading, 50, 200*time.Millisecond,
						5*time.Second)
					return err
				})
				ids := make([]string, len(received))
				for i := range received {
					ids[i] = received[i].ID
					r.inspect(received[i].Value, name)
				}
				if len(ids) > 0 {
					r.do(loading, "acknowledge to "+name, func(c *client.Client) error {
						return c.Topic(name).Subscription("s").Ack(loading, ids...)
					})
				}
			}
		})
	}
	for _, m := range g.Members {
		pause(ctx, 2*time.Second)
		if err := m.Stop(stopTimeout); err != nil {
			t.Error(err)
		}
		if err := m.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pause(ctx, 2*time.Second)
	stop()
	load.Wait()
	t.Logf("rolling restart of %d members: %d calls, %d retried once, %d failed; %d messages foreign or damaged",
		len(g.Members), r.calls.Load(), r.retried.Load(), r.failed.Load(), r.foreign.Load())
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		t.Logf("retried %d times: %s", r.reasons[reason], reason)
	}
	if n := r.failed.Load(); n > 0 || r.calls.Load() == 0 {
		t.Errorf("failed after one retry: got %d of %d calls, want none", n, r.calls.Load())
	}
	if n := r.foreign.Load(); n > 0 {
		t.Errorf("messages that are foreign or damaged: got %d, want none", n)
	}
}
