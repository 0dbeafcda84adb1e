package pebble

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/storage/engine"
)

// TestNewcomersQueue makes a message durable without waking waiting consumers, as it is for a
// moment while a commit batch completes: a new call must not overtake a waiting one.
func TestNewcomersQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		e := openMemory(t)
		if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
			t.Fatal(err)
		}
		if err := e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		p := (*e.topics.m[1].parts.Load())[0]
		p.durable.Store(0)
		first := make(chan int, 1)
		go func() {
			got, err := e.Receive(ctx, 1, "s",
				engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
			if err != nil {
				t.Error(err)
			}
			first <- len(got)
		}()
		synctest.Wait()
		p.durable.Store(1)
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		if err != nil || len(got) != 0 {
			t.Errorf("new call: got %d messages, %v; want none", len(got), err)
		}
		if n := <-first; n != 1 {
			t.Errorf("waiting call: got %d messages, want 1", n)
		}
	})
}

// TestServedWhileLeaving serves a call at the moment when it is cancelled: the message must be
// available for the next call immediately.
func TestServedWhileLeaving(t *testing.T) {
	t.Parallel()
	e := openMemory(t)
	bg := context.Background()
	if err := e.CreateTopic(bg, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateSubscription(bg, 1, "s", engine.SubscriptionConfig{Lease: time.Hour},
		engine.Position{}); err != nil {
		t.Fatal(err)
	}
	s := e.topics.m[1].subs["s"]
	req := engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions}
	for round := range 50 {
		ctx, cancel := context.WithCancel(bg)
		served := make(chan []engine.Delivery, 1)
		go func() {
			got, err := e.Receive(ctx, 1, "s", req)
			if err != nil && err != context.Canceled { //nolint:errorlint // returned as it is
				t.Error(err)
			}
			served <- got
		}()
		for waiting := 0; waiting == 0; runtime.Gosched() {
			s.mu.Lock()
			waiting = s.waiters.n
			s.mu.Unlock()
		}
		s.mu.Lock()
		cancel()
		for range 100 {
			runtime.Gosched() // let the caller block on the lock that the test holds
		}
		appended := make(chan error, 1)
		go func() {
			_, err := e.Append(bg, 1, 0, []engine.Message{{Payload: []byte("x")}})
			appended <- err
		}()
		for p := s.cursors[0].part; p.durable.Load() == uint64(round); {
			runtime.Gosched()
		}
		s.dispatchLocked(time.Now())
		s.mu.Unlock()
		if err := <-appended; err != nil {
			t.Fatal(err)
		}
		got := <-served
		if len(got) == 0 {
			var err error
			if got, err = e.Receive(bg, 1, "s",
				engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions}); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 1 || got[0].Redeliveries != 0 {
			t.Fatalf("round %d: got %d messages, want 1 without redeliveries", round, len(got))
		}
		if err := e.Settle(bg, 1, "s", []engine.Settlement{{ID: got[0].ID}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeletedWhileHeld deletes or resets a subscription while a caller is about to release its
// leases.
func TestDeletedWhileHeld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := openMemory(t)
	for id, remove := range map[engine.TopicID]func() error{
		1: func() error { return e.DeleteSubscription(ctx, 1, "s") },
		2: func() error { return e.DeleteTopic(ctx, 2) },
		3: func() error { return e.ResetSubscription(ctx, 3, "s", engine.Position{Kind: engine.Latest}) },
	} {
		if err := errors.Join(
			e.CreateTopic(ctx, id, keepAll),
			e.CreateSubscription(ctx, id, "s", engine.SubscriptionConfig{}, engine.Position{}),
		); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Append(ctx, id, 0, []engine.Message{{}, {}, {}}); err != nil {
			t.Fatal(err)
		}
		s := e.topics.m[id].subs["s"]
		got, err := s.take(ctx, engine.ReceiveRequest{Max: 2, Partition: 0}, time.Time{})
		if err != nil || len(got.leases) != 2 {
			t.Fatalf("take: got %d leases, %v; want 2", len(got.leases), err)
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		s.returnLeases(got)
		s.forgetTrimmed(got.leases[0].item)
		if s.leased != 0 || len(s.timers) != 0 || len(s.cursors[0].ready) != 0 {
			t.Errorf("topic %d: got %d leased, %d timers, %d ready; want none", id, s.leased, len(s.timers),
				len(s.cursors[0].ready))
		}
	}
}
