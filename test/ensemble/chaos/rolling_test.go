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

	"freshet.dev/client"
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

// rollingTopics is the number of topics of a retrier's load.
const rollingTopics = 6

// newRetrier returns a retrier for the members of an ensemble, with its topics.
func newRetrier(ctx context.Context, t *testing.T, g *Ensemble) *retrier {
	t.Helper()
	r := &retrier{t: t, reasons: make(map[string]int)}
	var err error
	if r.clients, err = clientsOf(g.Clients(), g.Members[0].Token(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for i := range rollingTopics {
		topic := r.clients[0].Topic(fmt.Sprintf("rolling-%d", i))
		if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := topic.Subscription("s").Create(ctx, client.SubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// load produces, consumes and acknowledges until the returned function is called.
func (r *retrier) load(ctx context.Context) (stop func()) {
	loading, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range rollingTopics {
		name := fmt.Sprintf("rolling-%d", i)
		running.Go(func() { r.produce(loading, name) })
		running.Go(func() { r.consume(loading, name) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func (r *retrier) produce(ctx context.Context, topic string) {
	for n := 0; pause(ctx, 20*time.Millisecond); n++ {
		r.do(ctx, "produce to "+topic, func(c *client.Client) error {
			value := stamp.Make(topic, "rolling", n, 200)
			_, err := c.Topic(topic).Produce(ctx, client.Message{Value: value, IdempotencyKey: fmt.Sprint(n)})
			return err
		})
	}
}

func (r *retrier) consume(ctx context.Context, topic string) {
	for pause(ctx, 20*time.Millisecond) {
		var received []client.Received
		r.do(ctx, "consume from "+topic, func(c *client.Client) (err error) {
			received, err = c.Topic(topic).Subscription("s").Fetch(ctx, 50, 200*time.Millisecond, 5*time.Second)
			return err
		})
		ids := make([]string, len(received))
		for i := range received {
			ids[i] = received[i].ID
			r.inspect(received[i].Value, topic)
		}
		if len(ids) > 0 {
			r.do(ctx, "acknowledge to "+topic, func(c *client.Client) error {
				return c.Topic(topic).Subscription("s").Ack(ctx, ids...)
			})
		}
	}
}

// report logs the counts, and fails the test if a call failed after one retry.
func (r *retrier) report() {
	r.t.Helper()
	r.t.Logf("%d calls, %d retried once, %d failed; %d messages foreign or damaged",
		r.calls.Load(), r.retried.Load(), r.failed.Load(), r.foreign.Load())
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		r.t.Logf("retried %d times: %s", r.reasons[reason], reason)
	}
	if n := r.failed.Load(); n > 0 || r.calls.Load() == 0 {
		r.t.Errorf("failed after one retry: got %d of %d calls, want none", n, r.calls.Load())
	}
	if n := r.foreign.Load(); n > 0 {
		r.t.Errorf("messages that are foreign or damaged: got %d, want none", n)
	}
}

// TestEnsembleRolling restarts the members gracefully, one after another, under load. No call
// of a client that retries once may fail.
func TestEnsembleRolling(t *testing.T) {
	g := newEnsemble(t, EnsembleOptions{}, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := newRetrier(ctx, t, g)
	stop := r.load(ctx)
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
	r.report()
}
