package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/storage/engine"
)

// selector selects the messages whose payloads contain the filter. For a payload that contains "?" the
// evaluation fails.
type selector struct {
	passed atomic.Int64
	// before, if set, is called before messages are read.
	before func(context.Context) error
	// after, if set, is called when a filter was evaluated for messages.
	after func()
}

// Select implements engine.Selector.
func (s *selector) Select(ctx context.Context, timeout time.Duration, _ engine.TopicID, filter string,
	read func(engine.Evaluate) error,
) error {
	if s.before != nil {
		waiting, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := s.before(waiting); err != nil {
			return err
		}
	}
	err := read(func(r *engine.Record) engine.Verdict {
		switch {
		case bytes.Contains(r.Payload, []byte("?")):
			return engine.Failed
		case bytes.Contains(r.Payload, []byte(filter)):
			return engine.Selected
		}
		return engine.PassedOver
	})
	if s.after != nil {
		s.after()
	}
	return err
}

// PassedOver implements engine.Selector.
func (s *selector) PassedOver(_ engine.TopicID, messages int) { s.passed.Add(int64(messages)) }

// filtered creates a subscription with a filter at the beginning of a topic.
func (v *env) filtered(id engine.TopicID, name, filter string) {
	v.Helper()
	v.ok(v.CreateSubscription(v.ctx, id, name, engine.SubscriptionConfig{Lease: 30 * v.tick, Filter: filter},
		engine.Position{Kind: engine.Earliest}))
}

// putMany appends payloads to partition 0 at once.
func (v *env) putMany(id engine.TopicID, payloads ...string) {
	v.Helper()
	msgs := make([]engine.Message, len(payloads))
	for i := range msgs {
		msgs[i] = engine.Message{Payload: []byte(payloads[i]), SchemaVersion: engine.NoSchema}
	}
	_, err := v.Append(v.ctx, id, 0, msgs)
	v.ok(err)
}

// expectSelected receives until only leased messages are left, and compares the payloads, in order.
func (v *env) expectSelected(want ...string) []engine.Delivery {
	v.Helper()
	var got []engine.Delivery
	v.eventually("the evaluation of all messages", func() bool {
		got = append(got, v.get(1, "s", 1000)...)
		s := v.subStats(1, "s")
		return s.Backlog == s.Leased
	})
	v.same(payloads(got), want)
	return got
}

// getSome receives until there are messages.
func (v *env) getSome(req engine.ReceiveRequest) (got []engine.Delivery) {
	v.Helper()
	v.eventually("messages", func() bool {
		got = v.getReq(1, "s", req)
		return len(got) > 0
	})
	return got
}

func (v *env) wantFiltered(want engine.FilterCounts, backlog uint64) {
	v.Helper()
	s := v.subStats(1, "s")
	if s.Filtered != want || s.Backlog != backlog {
		v.Fatalf("got the counts %+v and a backlog of %d, want %+v and %d", s.Filtered, s.Backlog, want, backlog)
	}
}

var filterTests = []testCase{
	{"selected messages are delivered, others are acknowledged and counted", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		v.put(1, "a0", "b1", "a2", "b3", "b4", "a5", "b6")
		v.wantFiltered(engine.FilterCounts{}, 7)
		got := v.expectSelected("a0", "a2", "a5")
		v.wantFiltered(engine.FilterCounts{Selected: 3, PassedOver: 4}, 3)
		if n := v.selector.passed.Load(); n != 4 {
			v.Fatalf("the selector was notified of %d messages, want 4", n)
		}
		v.ack(1, "s", got[0].ID, got[1].ID, got[2].ID)
		v.wantFiltered(engine.FilterCounts{Selected: 3, PassedOver: 4}, 0)
		v.crash()
		v.expectSelected()
		v.wantFiltered(engine.FilterCounts{}, 0)
	}},
	{"messages that were passed over stay so after a crash, selected ones are delivered again", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		v.put(1, "b0", "a1", "b2")
		v.expectSelected("a1")
		v.expectSelected()
		v.put(1, "b3")
		v.expectSelected()
		v.crash()
		v.expectSelected("a1")
		v.wantFiltered(engine.FilterCounts{Selected: 1}, 1)
	}},
	{"a message for which the evaluation fails is delivered and counted", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		v.put(1, "b0", "?1", "a2", "?3")
		v.expectSelected("?1", "a2", "?3")
		v.wantFiltered(engine.FilterCounts{Selected: 3, PassedOver: 1, Failed: 2}, 3)
	}},
	{"selected messages beyond the limit stay available and count no delivery", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		v.put(1, "b0", "b1", "b2", "a3", "a4", "b5", "a6")
		for _, want := range []string{"a3", "a4", "a6"} {
			got := v.getSome(engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
			v.same(payloads(got), []string{want})
			if got[0].Redeliveries != 0 {
				v.Fatalf("%s: got %d redeliveries, want none", want, got[0].Redeliveries)
			}
		}
		req := engine.ReceiveRequest{Max: 10, MaxBytes: 5, Partition: engine.AllPartitions}
		v.put(1, "a7", "b8 long", "b9 long", "a10", "a11")
		v.same(payloads(v.getSome(req)), []string{"a7", "a10"})
		v.same(payloads(v.getSome(req)), []string{"a11"})
	}},
	{"a rare match is found after many messages, in every partition", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.filtered(1, "s", "a")
		v.putMany(1, numbered("b", 0, 5000)...)
		v.putPart(1, 0, "a0")
		v.putPart(1, 1, "a1")
		seen := map[string]bool{}
		v.eventually("both matches", func() bool {
			for _, d := range v.get(1, "s", 1) {
				seen[string(d.Payload)] = true
			}
			return len(seen) == 2
		})
		v.wantFiltered(engine.FilterCounts{Selected: 2, PassedOver: 5000}, 2)
	}},
	{"a waiting caller gets the first selected message", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		result := make(chan []engine.Delivery, 1)
		go func() {
			got, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 5, Wait: time.Hour, Partition: engine.AllPartitions})
			if err != nil {
				v.Error(err)
			}
			result <- got
		}()
		v.put(1, "b0", "b1")
		v.sleep(0.1)
		v.put(1, "b2", "a3")
		v.same(payloads(<-result), []string{"a3"})
	}},
	{"a message that was delivered once stays selected", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		ids := v.put(1, "a0", "a1", "c2")
		v.same(payloads(v.getSome(engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})), []string{"a0"})
		v.ok(v.ConfigureSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{Filter: "c"}))
		v.settle(1, "s", engine.Nack, ids[0])
		v.expectSelected("a0", "c2")
		v.wantFiltered(engine.FilterCounts{Selected: 2, PassedOver: 1}, 2)
		v.ok(v.ConfigureSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{}))
		v.put(1, "x3")
		v.expectSelected("x3")
	}},
	{"a filter that was replaced passes over no message", testReplacedFilter},
	{"a failed evaluation releases the messages without counting a delivery", testFailedSelector},
	{"a cancelled call loses no message", testCancelledSelection},
	{"without a selector nothing is delivered or passed over", func(v *env) {
		v.topic(1, retainAll)
		v.filtered(1, "s", "a")
		v.put(1, "b0", "a1")
		v.ok(v.Engine.Close())
		v.Engine = v.store.Open(v.T)
		_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		v.want(err, engine.ErrNoSelector)
		v.SelectWith(&v.selector)
		got := v.expectSelected("a1")
		if got[0].Redeliveries != 0 {
			v.Fatalf("got %d redeliveries, want none", got[0].Redeliveries)
		}
	}},
	{"many consumers get each selected message once, and no other", testFilteredConsumers},
}

// testReplacedFilter replaces the filter and resets the subscription while the old filter is evaluated.
func testReplacedFilter(v *env) {
	v.topic(1, retainAll)
	v.filtered(1, "s", "a")
	v.put(1, "b0", "a1")
	replaced := false
	v.selector.after = func() {
		if !replaced {
			replaced = true
			v.ok(v.ConfigureSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{Filter: "b"}))
		}
	}
	v.expectSelected("b0")
	v.wantFiltered(engine.FilterCounts{Selected: 1, PassedOver: 1}, 1)
	reset := false
	v.selector.after = func() {
		if !reset {
			reset = true
			v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.Earliest}))
		}
	}
	v.put(1, "b2")
	v.expectSelected("b0", "b2")
}

func testFailedSelector(v *env) {
	v.topic(1, retainAll)
	v.topic(2, retainAll)
	v.ok(v.CreateSubscription(v.ctx, 1, "s",
		engine.SubscriptionConfig{Filter: "a", MaxDeliveries: 1, DeadLetterTopic: 2}, engine.Position{}))
	v.put(1, "b0", "a1")
	v.selector.before = func(context.Context) error { return engine.ErrBusy }
	for range 3 {
		_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		v.want(err, engine.ErrBusy)
	}
	v.selector.before = func(ctx context.Context) error { // as if other callers had all processors
		<-ctx.Done()
		return ctx.Err()
	}
	if !v.skipTimed {
		v.same(payloads(v.get(1, "s", 1)), []string{})
	}
	v.selector.before = nil
	got := v.expectSelected("a1")
	if got[0].Redeliveries != 0 {
		v.Fatalf("got %d redeliveries, want none", got[0].Redeliveries)
	}
	v.wantFiltered(engine.FilterCounts{Selected: 1, PassedOver: 1}, 1)
	v.same(v.read(2, 0), []string{})
}

func testCancelledSelection(v *env) {
	v.topic(1, retainAll)
	v.filtered(1, "s", "a")
	v.put(1, "b0", "a1")
	ctx, cancel := context.WithCancel(v.ctx)
	v.selector.after = cancel
	_, err := v.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
	v.want(err, context.Canceled)
	v.selector.after = nil
	v.eventually("the message", func() bool {
		got := v.get(1, "s", 1)
		return len(got) == 1 && string(got[0].Payload) == "a1"
	})
}

// testFilteredConsumers produces and consumes concurrently, and checks the origin of every message.
func testFilteredConsumers(v *env) {
	const messages, consumers = 2000, 8
	v.topic(1, retainAllParts(4))
	v.filtered(1, "s", "a")
	var mu sync.Mutex
	seen := map[string]int{}
	done := make(chan struct{})
	var work sync.WaitGroup
	for range consumers {
		work.Go(func() {
			for {
				got, err := v.Receive(v.ctx, 1, "s",
					engine.ReceiveRequest{Max: 7, Wait: v.tick, Partition: engine.AllPartitions})
				if err != nil {
					v.Error(err)
					return
				}
				var acks []engine.Settlement
				mu.Lock()
				for i := range got {
					seen[string(got[i].Payload)]++
					acks = append(acks, engine.Settlement{ID: got[i].ID, Action: engine.Ack})
				}
				mu.Unlock()
				if len(acks) > 0 {
					if err := v.Settle(v.ctx, 1, "s", acks); err != nil {
						v.Error(err)
						return
					}
					continue
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for at := 0; at < messages; at += 50 {
		msgs := make([]engine.Message, 50)
		for i := range msgs {
			kind := "b"
			if (at+i)%3 == 0 {
				kind = "a"
			}
			msgs[i] = engine.Message{Payload: fmt.Appendf(nil, "%s%d", kind, at+i), SchemaVersion: engine.NoSchema}
		}
		_, err := v.Append(v.ctx, 1, int32(at/50%4), msgs)
		v.ok(err)
	}
	v.eventually("an empty backlog", func() bool { return v.subStats(1, "s").Backlog == 0 })
	close(done)
	work.Wait()
	for i := range messages {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		if want := (i%3 == 0); want && seen[a] != 1 || seen[b] != 0 {
			v.Fatalf("message %d: delivered %d and %d times, want it to be delivered: %t", i, seen[a], seen[b], want)
		}
	}
	if got := v.subStats(1, "s").Filtered; got.Selected != 667 || got.PassedOver != 1333 {
		v.Fatalf("got %+v, want 667 selected and 1333 passed over", got)
	}
}
