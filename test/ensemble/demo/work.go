package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"freshet.dev/client"
	"freshet/test/ensemble/chaos"
	"freshet/test/stamp"
)

// maxSeen bounds the number of remembered consumed messages.
const maxSeen = 200_000

// topics is the number of topics: enough that every member owns some.
const topics = 12

// work is the clients of the ensemble. It tracks messages by topic and number, to count
// those that are acknowledged and not yet consumed. mu protects the maps.
type work struct {
	clients []*client.Client
	running sync.WaitGroup

	produced, consumed, failed, redelivered atomic.Int64
	foreign                                 atomic.Int64 // delivered under the name of another topic, or damaged

	mu      sync.Mutex
	waiting map[string]bool // acknowledged to the producer, not yet consumed
	early   map[string]bool // consumed before the producer got its acknowledgement
	seen    map[string]bool // recently consumed, to detect redeliveries
}

func newWork(ctx context.Context, ensemble *chaos.Ensemble) (*work, error) {
	w := &work{waiting: map[string]bool{}, early: map[string]bool{}, seen: map[string]bool{}}
	token := ensemble.Members[0].Token()
	for _, m := range ensemble.Members {
		c, err := client.New(client.Config{
			BaseURL: m.URL, TokenSource: client.StaticToken(token),
			Timeout: 3 * time.Second, MaxAttempts: 1,
		})
		if err != nil {
			return nil, err
		}
		w.clients = append(w.clients, c)
	}
	for i := range topics {
		topic := w.clients[0].Topic(name(i))
		if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
			return nil, fmt.Errorf("creating topic %s: %w", name(i), err)
		}
		if err := topic.Subscription("demo").Create(ctx,
			client.SubscriptionOptions{From: client.Earliest}); err != nil {
			return nil, fmt.Errorf("creating the subscription of %s: %w", name(i), err)
		}
	}
	return w, nil
}

func name(topic int) string { return fmt.Sprintf("demo-%d", topic) }

func (w *work) any() *client.Client { return w.clients[rand.IntN(len(w.clients))] }

func (w *work) start(ctx context.Context) {
	for i := range topics {
		w.running.Go(func() { w.produce(ctx, name(i)) })
		w.running.Go(func() { w.consume(ctx, name(i)) })
	}
}

func (w *work) wait() { w.running.Wait() }

// produce sends messages to random members and retries each until it is acknowledged.
func (w *work) produce(ctx context.Context, topic string) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprint(topic, "/", n)
		value := stamp.Make(topic, "demo", n, 100)
		for ctx.Err() == nil {
			_, err := w.any().Topic(topic).Produce(ctx, client.Message{Value: value, IdempotencyKey: key})
			if err == nil {
				w.noteAcknowledged(key)
				break
			}
			w.fail(ctx, err)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func (w *work) consume(ctx context.Context, topic string) {
	for ctx.Err() == nil {
		received, err := w.any().Topic(topic).Subscription("demo").Fetch(ctx, 50, time.Second, 3*time.Second)
		if err != nil {
			w.fail(ctx, err)
			continue
		}
		ids := make([]string, len(received))
		for i := range received {
			ids[i] = received[i].ID
			if got, err := stamp.Check(received[i].Value, topic, stamp.AnyPartition); err != nil {
				w.foreign.Add(1)
			} else {
				w.noteConsumed(fmt.Sprint(topic, "/", got.Number))
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := w.any().Topic(topic).Subscription("demo").Ack(ctx, ids...); err != nil {
			w.fail(ctx, err)
		}
	}
}

func (w *work) fail(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		w.failed.Add(1)
		pause(ctx, 100*time.Millisecond)
	}
}

func (w *work) noteAcknowledged(key string) {
	w.produced.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.early[key] {
		delete(w.early, key)
		return
	}
	w.waiting[key] = true
}

func (w *work) noteConsumed(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[key] {
		w.redelivered.Add(1)
		return
	}
	w.consumed.Add(1)
	if len(w.seen) > maxSeen {
		clear(w.seen)
	}
	w.seen[key] = true
	if w.waiting[key] {
		delete(w.waiting, key)
	} else {
		w.early[key] = true
	}
}

// backlog returns the number of messages that are acknowledged and not yet consumed.
func (w *work) backlog() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
