package enginetest

import (
	"time"

	"freshet/internal/storage/engine"
)

// leaseOwnerTests check that only the consumer with the current lease can settle or extend it,
// and not the consumer of an earlier lease (docs/spec/messages.md#m7).
var leaseOwnerTests = []testCase{
	{"a late settlement does not affect the lease of the next consumer", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		old := v.lease(1, "s", 1)
		v.sleep(1.5)
		next := v.lease(1, "s", 10)
		for _, action := range []engine.Action{engine.Nack, engine.Extend} {
			v.want(v.settleAs(1, "s", action, 20, old), engine.ErrLeaseEnded)
			// Without a delivery number the sender is ambiguous.
			v.want(v.settleAs(1, "s", action, 20,
				engine.Delivery{Record: engine.Record{ID: old.ID}, Redeliveries: noDelivery}), engine.ErrLeaseEnded)
		}
		v.ok(v.settleAs(1, "s", engine.Release, 0, old)) // no error, and no effect
		v.expect(1, "s")
		v.sleep(8)
		v.expect(1, "s") // the current lease was not changed
		v.sleep(2)
		if got := v.expect(1, "s", "a"); got[0].Redeliveries != next.Redeliveries+1 {
			v.Fatalf("got %d redeliveries, want %d", got[0].Redeliveries, next.Redeliveries+1)
		}
	}},
	{"the current consumer can extend and release after an earlier lease", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		v.lease(1, "s", 1)
		v.sleep(1.5)
		next := v.lease(1, "s", 2)
		v.ok(v.settleAs(1, "s", engine.Extend, 10, next))
		v.sleep(3)
		v.expect(1, "s")
		v.ok(v.settleAs(1, "s", engine.Nack, 0, next))
		v.want(v.settleAs(1, "s", engine.Nack, 0, next), engine.ErrLeaseEnded)
		last := v.lease(1, "s", 10)
		v.ok(v.settleAs(1, "s", engine.Release, 0, last))
		v.expect(1, "s", "a")
	}},
	{"accepting and rejecting need the current lease, and are all or nothing", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b", "c")
		old := v.lease(1, "s", 1)
		held := v.getReq(1, "s", engine.ReceiveRequest{Max: 2, Lease: 30 * v.tick, Partition: 0})
		v.sleep(1.5)
		for _, action := range []engine.Action{engine.Accept, engine.Reject} {
			v.want(v.settleAs(1, "s", action, 0, held[0], old), engine.ErrLeaseEnded)
		}
		v.ok(v.settleAs(1, "s", engine.Accept, 0, held[0]))
		v.ok(v.settleAs(1, "s", engine.Reject, 0, held[1])) // without a dead-letter topic it is acknowledged
		v.want(v.settleAs(1, "s", engine.Accept, 0, held[0]), engine.ErrLeaseEnded)
		v.expect(1, "s", "a")
		v.crash()
		v.expect(1, "s", "a")
	}},
	{"a returned message does not count a delivery", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		for range 3 {
			got := v.expect(1, "s", "a")
			if got[0].Redeliveries != 0 {
				v.Fatalf("got %d redeliveries, want none", got[0].Redeliveries)
			}
			v.ok(v.settleAs(1, "s", engine.Return, 0, got[0]))
			v.ok(v.settleAs(1, "s", engine.Return, 0, got[0])) // no error, and no effect
		}
	}},
	{"without a delivery number the current lease is meant, unless one has expired", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		id := v.put(1, "a")[0]
		ambiguous := engine.Delivery{Record: engine.Record{ID: id}, Redeliveries: noDelivery}
		v.want(v.settleAs(1, "s", engine.Nack, 0, ambiguous), engine.ErrLeaseEnded) // it is not leased
		for range 3 {
			v.expect(1, "s", "a")
			v.ok(v.settleAs(1, "s", engine.Extend, 10, ambiguous))
			v.ok(v.settleAs(1, "s", engine.Nack, 0, ambiguous))
		}
	}},
	{"one lease that has ended rejects the whole call", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a", "b", "c")
		got := v.expect(1, "s", "a", "b", "c")
		v.ack(1, "s", got[1].ID)
		for _, action := range []engine.Action{engine.Nack, engine.Extend} {
			v.want(v.settleAs(1, "s", action, 1, got...), engine.ErrLeaseEnded)
		}
		mixed := []engine.Settlement{{ID: got[0].ID, Action: engine.Ack}, {ID: got[1].ID, Action: engine.Nack}}
		v.want(v.Settle(v.ctx, 1, "s", mixed), engine.ErrLeaseEnded)
		v.sleep(2)
		v.expect(1, "s")
		if s := v.subStats(1, "s"); s.Backlog != 2 || s.Leased != 2 {
			v.Fatalf("got a backlog of %d with %d leased, want 2 and 2", s.Backlog, s.Leased)
		}
	}},
	{"a late acknowledgement ends the lease of the next consumer", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		old := v.lease(1, "s", 1)
		v.sleep(1.5)
		next := v.lease(1, "s", 10)
		v.ok(v.settleAs(1, "s", engine.Ack, 0, old))
		v.want(v.settleAs(1, "s", engine.Extend, 10, next), engine.ErrLeaseEnded)
		v.sleep(31)
		v.expect(1, "s")
	}},
}

// noDelivery is a value of Redeliveries for a settlement without a delivery number.
const noDelivery = ^uint32(0)

// lease receives one message with a lease of some ticks.
func (v *env) lease(id engine.TopicID, name string, ticks int) engine.Delivery {
	v.Helper()
	got := v.getReq(id, name,
		engine.ReceiveRequest{Max: 1, Lease: v.tick * time.Duration(ticks), Partition: engine.AllPartitions})
	if len(got) != 1 {
		v.Fatalf("got %d messages, want one", len(got))
	}
	return got[0]
}

// settleAs settles messages with the leases of the given deliveries.
func (v *env) settleAs(id engine.TopicID, name string, action engine.Action, ticks int, held ...engine.Delivery) error {
	v.Helper()
	list := make([]engine.Settlement, len(held))
	for i := range held {
		list[i] = engine.Settlement{
			ID: held[i].ID, Action: action, Delay: v.tick * time.Duration(ticks),
			Delivery: held[i].Redeliveries + 1,
		}
	}
	return v.Settle(v.ctx, id, name, list)
}
