package enginetest

import (
	"fmt"
	"sync"
	"time"

	"freshet/internal/storage/engine"
)

func deduping(parts int32) engine.TopicConfig {
	c := retainAllParts(parts)
	c.Deduplicate = true
	return c
}

func sequenced(producer string, sequence uint64, payload string) engine.Message {
	return engine.Message{Payload: []byte(payload), Dedup: engine.DedupKey{Producer: producer, Sequence: sequence}}
}

var dedupTests = []testCase{
	{"a duplicate is dropped and gets the id of the original", func(v *env) {
		v.topic(1, deduping(2))
		first := v.putMsg(1, 0, sequenced("p", 1, "a"))
		again := v.putMsg(1, 0, sequenced("p", 1, "a"))
		elsewhere := v.putMsg(1, 1, sequenced("p", 1, "a"))
		if first.Duplicate || !again.Duplicate || !elsewhere.Duplicate || again.ID != first.ID ||
			elsewhere.ID != first.ID {
			v.Fatalf("got %+v, %+v and %+v, want one message and two duplicates of it", first, again, elsewhere)
		}
		v.same(v.read(1, 0), []string{"a"})
		v.same(v.read(1, 1), []string{})
		other := v.putMsg(1, 1, sequenced("p", 2, "b"))
		if again := v.putMsg(1, 0, sequenced("p", 2, "b")); !again.Duplicate || again.ID != other.ID {
			v.Fatalf("got %+v, want a duplicate of %+v", again, other)
		}
		v.crash()
		if again := v.putMsg(1, 1, sequenced("p", 1, "a")); !again.Duplicate || again.ID != first.ID {
			v.Fatalf("after a crash: got %+v, want a duplicate of %+v", again, first)
		}
	}},
	{"messages with other keys, and without a key, are new", func(v *env) {
		v.topic(1, deduping(1))
		msgs := []engine.Message{
			sequenced("p", 5, "p5"), sequenced("q", 5, "q5"), sequenced("p", 4, "p4"), sequenced("p", 0, "p0"),
			sequenced("", 5, "nobody"), sequenced("", 5, "nobody"), sequenced("p\x00", 5, "odd"),
			{Payload: []byte("plain"), Producer: "p", Sequence: 5, HasSequence: true},
			{Payload: []byte("plain"), Producer: "p", Sequence: 5, HasSequence: true},
		}
		for _, m := range msgs {
			if out := v.putMsg(1, 0, m); out.Duplicate {
				v.Fatalf("got %s as a duplicate, want it new", m.Payload)
			}
		}
		if n := len(v.read(1, 0)); n != len(msgs) {
			v.Fatalf("got %d messages, want %d", n, len(msgs))
		}
	}},
	{"a topic that does not deduplicate accepts everything", func(v *env) {
		v.topic(1, retainAll)
		for range 3 {
			if out := v.putMsg(1, 0, sequenced("p", 1, "a")); out.Duplicate {
				v.Fatalf("got %+v, want every message kept", out)
			}
		}
	}},
	{"duplicates within one append are detected", func(v *env) {
		v.topic(1, deduping(1))
		v.putMsg(1, 0, sequenced("p", 1, "a"))
		out, err := v.Append(v.ctx, 1, 0, []engine.Message{
			sequenced("p", 2, "b"), sequenced("p", 1, "a"), sequenced("p", 2, "b"), sequenced("p", 3, "c"),
		})
		v.ok(err)
		for i, want := range []struct {
			entry uint64
			dup   bool
		}{{1, false}, {0, true}, {1, true}, {2, false}} {
			if out[i].ID.Entry != want.entry || out[i].Duplicate != want.dup {
				v.Fatalf("message %d: got %+v, want %+v", i, out[i], want)
			}
		}
		v.same(v.read(1, 0), []string{"a", "b", "c"})
	}},
	{"one of many concurrent duplicates is new", func(v *env) {
		v.topic(1, deduping(4))
		var wg sync.WaitGroup
		var mu sync.Mutex
		fresh := map[uint64]engine.MessageID{}
		results := map[uint64][]engine.MessageID{}
		for w := range 8 {
			wg.Go(func() {
				for seq := range uint64(30) {
					out, err := v.Append(v.ctx, 1, int32(w%4), []engine.Message{sequenced("p", seq, fmt.Sprint(seq))})
					if err != nil {
						v.Error(err)
						return
					}
					mu.Lock()
					if !out[0].Duplicate {
						if _, twice := fresh[seq]; twice {
							v.Errorf("got sequence %d as new twice, want once", seq)
						}
						fresh[seq] = out[0].ID
					}
					results[seq] = append(results[seq], out[0].ID)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for seq, ids := range results {
			for _, id := range ids {
				if id != fresh[seq] {
					v.Fatalf("sequence %d: got id %v, want %v, that of the original", seq, id, fresh[seq])
				}
			}
		}
	}},
	{"a retry is detected although its message is consumed and retention is 0", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1, Deduplicate: true})
		v.sub(1, "s")
		first := v.putMsg(1, 0, sequenced("p", 1, "a"))
		v.ack(1, "s", v.expect(1, "s", "a")[0].ID)
		v.sleep(60)
		if again := v.putMsg(1, 0, sequenced("p", 1, "a")); !again.Duplicate || again.ID != first.ID {
			v.Fatalf("got %+v, want a duplicate of %+v", again, first)
		}
	}},
}

var deadLetterTests = []testCase{
	{"a rejected message is a dead letter, once and durably", func(v *env) {
		v.topic(1, retainAll)
		v.topic(2, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 5, DeadLetterTopic: 2, Lease: time.Hour}, engine.Position{}))
		v.put(1, "good", "bad", "worse")
		got := v.expect(1, "s", "good", "bad", "worse")
		v.ok(v.Settle(v.ctx, 1, "s", []engine.Settlement{
			{ID: got[0].ID, Action: engine.Accept, Delivery: 1},
			{ID: got[1].ID, Action: engine.Reject, Delivery: 1},
			{ID: got[1].ID, Action: engine.Reject, Delivery: 1}, // twice in one call
			{ID: got[2].ID, Action: engine.Reject, Delivery: 1},
		}))
		v.same(v.read(2, 0), []string{"bad", "worse"})
		v.want(v.settleAs(1, "s", engine.Reject, 0, got[1]), engine.ErrLeaseEnded)
		v.crash()
		v.same(v.read(2, 0), []string{"bad", "worse"})
		v.expect(1, "s")
		if stats := v.subStats(1, "s"); stats.Backlog != 0 || stats.Leased != 0 {
			v.Fatalf("got %d messages in the backlog and %d leased, want none", stats.Backlog, stats.Leased)
		}
	}},
	{"a rejected message that cannot be moved is delivered again", func(v *env) {
		v.topic(1, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 5, DeadLetterTopic: 99, Lease: time.Hour}, engine.Position{}))
		v.put(1, "bad")
		got := v.expect(1, "s", "bad")
		if err := v.settleAs(1, "s", engine.Reject, 0, got[0]); err == nil {
			v.Fatal("rejecting without the dead-letter topic got no error")
		}
		v.expect(1, "s", "bad")
	}},
	{"after its last delivery a message moves to the dead letter topic", func(v *env) {
		v.topic(1, retainAll)
		v.topic(2, retainAll)
		v.sub(2, "letters")
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 3, DeadLetterTopic: 2, Lease: v.tick}, engine.Position{}))
		m := engine.Message{
			Payload: []byte("bad"), Key: "k",
			Properties: []engine.Property{{Key: "x", Value: "y"}}, EventTime: 7,
		}
		id := v.putMsg(1, 0, m).ID
		v.put(1, "good")
		for want := range uint32(3) {
			got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: 0})
			if string(got[0].Payload) != "bad" || got[0].Redeliveries != want {
				v.Fatalf("got %s with %d redeliveries, want bad with %d", got[0].Payload, got[0].Redeliveries, want)
			}
			if want == 0 {
				v.ack(1, "s", v.expect(1, "s", "good")[0].ID)
				continue
			}
			v.ok(v.settleAs(1, "s", engine.Nack, 0, got[0]))
		}
		got := v.getReq(2, "letters", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: 0})
		d := got[0]
		if string(d.Payload) != "bad" || d.Key != "k" || d.EventTime != 7 || len(d.Properties) != 2 ||
			d.Properties[0].Key != "x" {
			v.Fatalf("got dead letter %+v, want %+v and its origin", d, m)
		}
		if want := (engine.Property{
			Key:   engine.OriginProperty,
			Value: fmt.Sprintf("%d:%d:%d", id.Topic, id.Entry, id.Partition),
		}); d.Properties[1] != want {
			v.Fatalf("origin: got %+v, want %+v", d.Properties[1], want)
		}
		v.crash()
		v.expect(1, "s")
		if s := v.subStats(1, "s"); s.Backlog != 0 {
			v.Fatalf("got %+v, want no backlog", s)
		}
		v.same(v.read(2, 0), []string{"bad"})
	}},
	{"a lease that expires counts as a delivery", func(v *env) {
		v.topic(1, retainAll)
		v.topic(2, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 2, DeadLetterTopic: 2, Lease: v.tick}, engine.Position{}))
		v.put(1, numbered("m", 0, 20)...)
		v.expect(1, "s", numbered("m", 0, 20)...)
		v.sleep(1.5)
		v.expect(1, "s", numbered("m", 0, 20)...)
		v.eventually("dead letters", func() bool { return v.stats(2).Partitions[0].Next == 20 })
		v.expect(1, "s")
	}},
	{"an acknowledged message is not moved to the dead letter topic", func(v *env) {
		v.topic(1, retainAll)
		v.topic(2, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 1, DeadLetterTopic: 2, Lease: 2 * v.tick}, engine.Position{}))
		v.put(1, "a", "b")
		got := v.expect(1, "s", "a", "b")
		v.sleep(1)
		v.ack(1, "s", got[0].ID)
		v.eventually("dead letter", func() bool { return v.stats(2).Partitions[0].Next == 1 })
		v.sleep(5)
		v.same(v.read(2, 0), []string{"b"})
	}},
	{"while the dead letter topic does not exist a message is redelivered", func(v *env) {
		v.topic(1, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 1, DeadLetterTopic: 99, Lease: v.tick}, engine.Position{}))
		v.put(1, "a")
		for want := range uint32(4) {
			got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: 0})
			if got[0].Redeliveries != want {
				v.Fatalf("got %d redeliveries, want %d", got[0].Redeliveries, want)
			}
		}
		v.topic(99, retainAll)
		v.eventually("dead letter", func() bool { return v.stats(99).Partitions[0].Next == 1 })
	}},
}
