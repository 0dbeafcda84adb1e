package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"freshet/internal/storage/engine"
)

var subscriptionTests = []testCase{
	{"a subscription is created once, and each has its own cursor", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, "a")
		v.sub(1, "one")
		v.want(v.CreateSubscription(v.ctx, 1, "one", engine.SubscriptionConfig{}, engine.Position{}),
			engine.ErrSubscriptionExists)
		v.sub(1, "two")
		v.ack(1, "one", v.expect(1, "one", "a")[0].ID)
		v.expect(1, "two", "a")
		v.reopen()
		v.want(v.CreateSubscription(v.ctx, 1, "one", engine.SubscriptionConfig{}, engine.Position{}),
			engine.ErrSubscriptionExists)
		v.expect(1, "one")
		v.expect(1, "two", "a")
	}},
	{"every call reports a missing subscription", func(v *env) {
		v.topic(1, retainAll)
		_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		v.want(err, engine.ErrNoSubscription)
		v.want(v.Settle(v.ctx, 1, "s", nil), engine.ErrNoSubscription)
		v.want(v.DeleteSubscription(v.ctx, 1, "s"), engine.ErrNoSubscription)
		v.want(v.ResetSubscription(v.ctx, 1, "s", engine.Position{}), engine.ErrNoSubscription)
		v.want(v.ConfigureSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{}), engine.ErrNoSubscription)
		v.want(v.CreateSubscription(v.ctx, 1, "", engine.SubscriptionConfig{}, engine.Position{}), engine.ErrInvalid)
		v.want(v.CreateSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{MaxDeliveries: 1}, engine.Position{}),
			engine.ErrInvalid)
	}},
	{"configurations survive a restart, and the caller may change its copy", func(v *env) {
		v.topic(1, retainAll)
		first := func() engine.SubscriptionConfig {
			return engine.SubscriptionConfig{
				Lease: 5 * time.Second, MaxDeliveries: 3, DeadLetterTopic: 9,
				Properties: map[string]string{"b": "2", "a": ""},
			}
		}
		second := func() engine.SubscriptionConfig {
			return engine.SubscriptionConfig{
				MaxDeliveries: 3, DeadLetterTopic: 9,
				Properties: map[string]string{"c": "3"}, Filter: "size > 3",
			}
		}
		check := func(want engine.SubscriptionConfig) {
			v.Helper()
			if got := v.subStats(1, "s").Config; !reflect.DeepEqual(got, want) {
				v.Fatalf("got %+v, want %+v", got, want)
			}
		}
		c := first()
		v.ok(v.CreateSubscription(v.ctx, 1, "s", c, engine.Position{}))
		c.Properties["later"] = "not stored"
		check(first())
		v.crash()
		check(first())
		c = second()
		v.ok(v.ConfigureSubscription(v.ctx, 1, "s", c))
		c.Properties["later"] = "not stored"
		check(second())
		v.reopen()
		check(second())
	}},
	{"a new subscription with the name of a deleted one starts empty", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, numbered("m", 0, 5)...)
		got := v.get(1, "s", 5)
		v.ack(1, "s", got[0].ID, got[2].ID)
		v.ok(v.DeleteSubscription(v.ctx, 1, "s"))
		v.want(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[1].ID}}), engine.ErrNoSubscription)
		v.sub(1, "s")
		v.expect(1, "s", numbered("m", 0, 5)...)
		v.crash()
		v.expect(1, "s", numbered("m", 0, 5)...)
	}},
	{"a deletion ends waiting callers", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		done := make(chan error, 1)
		go func() {
			_, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
			done <- err
		}()
		v.sleep(0.5)
		v.ok(v.DeleteSubscription(v.ctx, 1, "s"))
		v.want(<-done, engine.ErrNoSubscription)
	}},
	{"acknowledgements in any order are exact and survive a restart", testAckOrder},
	{"an id of another topic or partition, or of no message, is rejected", func(v *env) {
		v.topic(1, retainAll)
		v.topic(2, retainAll)
		v.sub(1, "s")
		v.put(2, "x")
		v.put(1, "a")
		for _, c := range []struct {
			id   engine.MessageID
			want error
		}{
			{engine.MessageID{Topic: 2}, engine.ErrForeignID},
			{engine.MessageID{Topic: 1, Partition: 1}, engine.ErrNoPartition},
			{engine.MessageID{Topic: 1, Partition: -1}, engine.ErrNoPartition},
			{engine.MessageID{Topic: 1, Entry: 1}, engine.ErrNoMessage},
		} {
			for _, action := range []engine.Action{engine.Ack, engine.AckTo, engine.Nack, engine.Extend} {
				err := v.Settle(v.ctx, 1, "s",
					[]engine.Settlement{{ID: engine.MessageID{Topic: 1}, Action: action}, {ID: c.id, Action: action}})
				if !errors.Is(err, c.want) {
					v.Errorf("%v of %+v: got error %v, want %v", action, c.id, err, c.want)
				}
			}
		}
		// A rejected call has no effect.
		v.expect(1, "s", "a")
	}},
	{"a cumulative acknowledgement settles all messages up to an id", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.sub(1, "s")
		ids := v.put(1, numbered("m", 1000, 1600)...) // all of one size
		size := v.stats(1).Partitions[0].Bytes / 600
		v.putPart(1, 1, "m1600")
		v.ack(1, "s", ids[3], ids[310], ids[599])
		if n := len(v.get(1, "s", 100)); n != 100 {
			v.Fatalf("got %d messages, want 100", n)
		}
		v.settle(1, "s", engine.AckTo, ids[300])
		check := func() {
			v.Helper()
			s := v.subStats(1, "s")
			if s.Cursors[0] != (engine.CursorStats{Floor: 301, Acked: 2}) || s.Backlog != 298 ||
				s.BacklogBytes != 298*size {
				v.Fatalf("got %+v, want floor 301, 2 acknowledged above and a backlog of 298 with %d bytes", s,
					298*size)
			}
		}
		check()
		v.settle(1, "s", engine.AckTo, ids[10])
		check()
		v.crash()
		check()
		v.settle(1, "s", engine.AckTo, ids[309])
		if s := v.subStats(1, "s"); s.Cursors[0] != (engine.CursorStats{Floor: 311, Acked: 1}) {
			v.Fatalf("got %+v, want floor 311 and 1 acknowledged above", s.Cursors)
		}
		v.settle(1, "s", engine.AckTo, ids[599])
		v.settle(1, "s", engine.AckTo, engine.MessageID{Topic: 1, Partition: 1})
		if s := v.subStats(1, "s"); s.Backlog != 0 || s.BacklogBytes != 0 {
			v.Fatalf("got %+v, want no backlog", s)
		}
	}},
	{"statistics of a subscription are exact", testSubscriptionStats},
}

// testAckOrder acknowledges in random order and compares the statistics with a plain set.
func testAckOrder(v *env) {
	const n = 1500
	v.topic(1, retainAll)
	v.sub(1, "s")
	var ids []engine.MessageID
	for range n / 100 {
		msgs := make([]engine.Message, 100)
		for i := range msgs {
			msgs[i].Payload = make([]byte, i)
		}
		out, err := v.Append(v.ctx, 1, 0, msgs)
		v.ok(err)
		for _, a := range out {
			ids = append(ids, a.ID)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	acked := make([]bool, n)
	check := func() {
		v.Helper()
		var floor, above, left uint64
		for floor < n && acked[floor] {
			floor++
		}
		for i := range acked {
			if !acked[i] {
				left++
			} else if uint64(i) >= floor {
				above++
			}
		}
		s := v.subStats(1, "s")
		if s.Cursors[0] != (engine.CursorStats{Floor: floor, Acked: above}) || s.Backlog != left {
			v.Fatalf("got cursor %+v and a backlog of %d, want floor %d, %d above and %d left", s.Cursors[0], s.Backlog,
				floor, above, left)
		}
	}
	order := rng.Perm(n)
	for len(order) > 0 {
		k := min(1+rng.IntN(60), len(order))
		var some []engine.MessageID
		for _, i := range order[:k] {
			some = append(some, ids[i])
			acked[i] = true
		}
		order = order[k:]
		v.ack(1, "s", some...)
		switch rng.IntN(12) {
		case 0:
			v.crash()
			check()
		case 1:
			v.reopen()
			check()
		case 2:
			check()
		}
	}
	check()
	if s := v.subStats(1, "s"); s.BacklogBytes != 0 {
		v.Fatalf("got a backlog of %d bytes, want none", s.BacklogBytes)
	}
}

func testSubscriptionStats(v *env) {
	c := retainAllParts(2)
	v.topic(1, c)
	v.sub(1, "s")
	v.subAt(1, "late", engine.Position{Kind: engine.Latest})
	var total int64
	for i := range 10 {
		v.putPart(1, int32(i%2), fmt.Sprintf("message %d", i))
	}
	for _, p := range v.stats(1).Partitions {
		total += p.Bytes
	}
	v.putMsg(1, 0, engine.Message{Payload: []byte("later"), DeliverAt: time.Now().Add(100 * v.tick).UnixMilli()})
	s := v.subStats(1, "s")
	if s.Backlog != 11 || s.BacklogBytes <= total || s.Leased != 0 || s.Delayed != 1 || s.Waiting != 0 {
		v.Fatalf("fresh: got %+v, want a backlog of 11 with more than %d bytes, 1 delayed, none leased or waiting", s,
			total)
	}
	got := v.get(1, "s", 4)
	v.ack(1, "s", got[0].ID)
	v.ok(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: got[1].ID, Action: engine.Nack, Delay: 50 * v.tick}}))
	s = v.subStats(1, "s")
	if s.Backlog != 10 || s.Leased != 2 || s.Delayed != 2 || s.Redelivered != 0 {
		v.Fatalf("some leased: got %+v, want a backlog of 10, 2 leased, 2 delayed, none redelivered", s)
	}
	v.needsTime()
	testWaitingStats(v)
	v.sleep(40)
	s = v.subStats(1, "s")
	if s.Leased != 0 || s.Backlog != 10 || s.Delayed != 2 {
		v.Fatalf("after the leases: got %+v, want a backlog of 10, none leased, 2 delayed", s)
	}
	if n := len(v.get(1, "s", 20)); n != 8 {
		v.Fatalf("got %d messages, want 8", n)
	}
	if s = v.subStats(1, "s"); s.Redelivered != 2 || s.Leased != 8 {
		v.Fatalf("after redelivery: got %+v, want 2 redelivered and 8 leased", s)
	}
	v.sleep(80)
	if s = v.subStats(1, "s"); s.Delayed != 0 || s.Leased != 0 {
		v.Fatalf("everything due: got %+v, want none delayed or leased", s)
	}
	names := []string{}
	for _, s := range v.stats(1).Subscriptions {
		names = append(names, s.Name)
	}
	v.same(names, []string{"late", "s"})
}

// testWaitingStats receives all messages of the subscription "late" and lets a call wait for
// more until its wait ends.
func testWaitingStats(v *env) {
	v.Helper()
	if n := len(v.get(1, "late", 20)); n != 10 {
		v.Fatalf("late: got %d messages, want 10", n)
	}
	type result struct {
		got []engine.Delivery
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := v.Receive(v.ctx, 1, "late", engine.ReceiveRequest{Max: 20, Wait: v.tick, Partition: 1})
		done <- result{got, err}
	}()
	v.sleep(0.5)
	if s := v.subStats(1, "late"); s.Waiting != 1 || s.Leased != 10 || s.Backlog != 11 || s.Delayed != 1 {
		v.Fatalf("late: got %+v, want 1 waiting, 10 leased, a backlog of 11 and 1 delayed", s)
	}
	if r := <-done; r.err != nil || len(r.got) != 0 {
		v.Fatalf("waiting caller: got %d messages, %v; want none", len(r.got), r.err)
	}
	if s := v.subStats(1, "late"); s.Waiting != 0 {
		v.Fatalf("late: got %d waiting, want none", s.Waiting)
	}
}
