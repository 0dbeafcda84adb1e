package enginetest

import (
	"time"

	"freshet/internal/storage/engine"
)

var leaseTests = []testCase{
	{"a message is redelivered with a count when its lease expires", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b")
		req := engine.ReceiveRequest{Max: 1, Lease: 2 * v.tick, Partition: engine.AllPartitions}
		before := time.Now()
		got := v.getReq(1, "s", req)
		if until := got[0].LeasedUntil.Sub(before); got[0].Redeliveries != 0 || until < 2*v.tick ||
			until > 3*v.tick+v.slack {
			v.Fatalf("got redelivery %d, leased for %v; want the first delivery, leased for %v", got[0].Redeliveries,
				until, 2*v.tick)
		}
		v.sleep(1)
		v.expect(1, "s", "b")
		for want := uint32(1); want < 4; want++ {
			req.Wait = time.Hour
			got = v.getReq(1, "s", req)
			if string(got[0].Payload) != "a" || got[0].Redeliveries != want {
				v.Fatalf("got %s with %d redeliveries, want %d", got[0].Payload, got[0].Redeliveries, want)
			}
		}
	}},
	{"the subscription's lease applies when the request has none", func(v *env) {
		v.topic(1, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{Lease: 3 * v.tick}, engine.Position{}))
		v.put(1, "a")
		v.expect(1, "s", "a")
		v.sleep(2.5)
		v.expect(1, "s")
		v.sleep(1)
		v.expect(1, "s", "a")
		v.ok(v.ConfigureSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{Lease: 10 * v.tick}))
		v.sleep(3.5)
		v.expect(1, "s", "a")
		v.sleep(9)
		v.expect(1, "s")
	}},
	{"a waiting caller gets a message whose lease expires", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		v.same(payloads(v.getReq(1, "s",
			engine.ReceiveRequest{Max: 1, Lease: v.tick, Partition: engine.AllPartitions})), []string{"a"})
		start := time.Now()
		got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
		if took := time.Since(start); len(got) != 1 || took > v.tick+50*time.Millisecond+v.slack {
			v.Fatalf("got %d messages after %v, want one after %v", len(got), took, v.tick)
		}
	}},
	{"acknowledged messages are never redelivered, and acknowledging twice is no error", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b", "c")
		got := v.expect(1, "s", "a", "b", "c")
		v.ack(1, "s", got[1].ID)
		v.ack(1, "s", got[1].ID, got[1].ID)
		v.sleep(31)
		v.expect(1, "s", "a", "c")
		v.crash()
		v.ack(1, "s", got[1].ID)
		v.expect(1, "s", "a", "c")
	}},
	{"an acknowledgement after the lease has expired is accepted", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b", "c")
		old := v.getReq(1, "s", engine.ReceiveRequest{Max: 2, Lease: v.tick, Partition: engine.AllPartitions})
		v.sleep(1.5)
		v.ack(1, "s", old[0].ID) // available again
		v.expect(1, "s", "b", "c")
		v.ack(1, "s", old[1].ID) // leased to another consumer
		v.sleep(31)
		v.expect(1, "s", "c")
	}},
	{"a message can be acknowledged without having been received", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		ids := v.put(1, "a", "b", "c")
		v.ack(1, "s", ids[1])
		v.expect(1, "s", "a", "c")
		s := v.subStats(1, "s")
		if s.Backlog != 2 || s.Cursors[0] != (engine.CursorStats{Floor: 0, Acked: 1}) {
			v.Fatalf("got %+v, want a backlog of 2, floor 0 and 1 acknowledged above", s)
		}
	}},
	{"a negative acknowledgement redelivers immediately or after its delay", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b")
		got := v.expect(1, "s", "a", "b")
		v.settle(1, "s", engine.Nack, got[0].ID)
		again := v.expect(1, "s", "a")
		if again[0].Redeliveries != 1 {
			v.Fatalf("got %d redeliveries, want 1", again[0].Redeliveries)
		}
		start := time.Now()
		v.ok(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[1].ID, Action: engine.Nack, Delay: 5 * v.tick}}))
		// The consumer that released the message cannot extend its lease.
		v.want(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[1].ID, Action: engine.Extend, Delay: 25 * v.tick}}),
			engine.ErrLeaseEnded)
		v.expect(1, "s")
		got = v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
		if took := time.Since(start); string(got[0].Payload) != "b" || took < 5*v.tick-2*time.Millisecond ||
			took > 6*v.tick+v.slack {
			v.Fatalf("got %s after %v, want b after %v", got[0].Payload, took, 5*v.tick)
		}
		v.ack(1, "s", got[0].ID)
		// An acknowledged message cannot be released.
		v.want(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[0].ID, Action: engine.Nack}}), engine.ErrLeaseEnded)
		v.sleep(31)
		v.expect(1, "s", "a")
	}},
	{"a lease can be extended, and shortened", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b")
		got := v.getReq(1, "s", engine.ReceiveRequest{Max: 2, Lease: 2 * v.tick, Partition: engine.AllPartitions})
		v.sleep(1)
		v.ok(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[0].ID, Action: engine.Extend, Delay: 10 * v.tick}}))
		v.sleep(2)
		v.expect(1, "s", "b")
		v.ok(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[0].ID, Action: engine.Extend, Delay: v.tick}}))
		v.sleep(1.1)
		if got = v.expect(1, "s", "a"); got[0].Redeliveries != 1 {
			v.Fatalf("got %d redeliveries, want 1", got[0].Redeliveries)
		}
	}},
	{"leases do not survive a crash, redelivery counts do", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b")
		for range 3 {
			got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Partition: 0})
			v.settle(1, "s", engine.Nack, got[0].ID)
		}
		v.put(1, "c") // when it is durable, so are the writes before it
		v.crash()
		got := v.expect(1, "s", "a", "b", "c")
		if got[0].Redeliveries != 3 || got[1].Redeliveries != 0 {
			v.Fatalf("got %d and %d redeliveries, want 3 and 0", got[0].Redeliveries, got[1].Redeliveries)
		}
	}},
	{"many leases expire individually", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, numbered("m", 0, 50)...)
		var ends []time.Time
		for i := range 50 {
			lease := 5*v.tick + time.Duration(50-i)*v.tick/5
			got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Lease: lease, Partition: 0})
			ends = append(ends, got[0].LeasedUntil)
		}
		for i := 49; i >= 0; i-- {
			got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Lease: time.Hour, Partition: 0})
			which := got[0].ID.Entry
			late := time.Since(ends[which])
			if which != uint64(i) && v.slack == 0 || late < 0 || late > v.tick/10+v.slack {
				v.Fatalf("got m%d %v after its lease expired, want m%d immediately", which, late, i)
			}
		}
	}},
}
