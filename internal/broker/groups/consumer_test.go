package groups_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
)

func TestConsumersShare(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 6, "other": 3})
		a, b, c := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders"), w.consumer(ts, "c", "orders")
		a.join()
		a.wantOwned(6)
		b.join()
		b.wantOwned(0) // a has not revoked yet
		a.beat()       // gets its smaller assignment
		a.wantOwned(3)
		b.beat()
		b.wantOwned(0) // a has not confirmed
		d, err := w.Describe(w.key)
		if err != nil || d.State != "Reconciling" || d.Type != groups.TypeConsumer || d.Protocol != "uniform" {
			w.Errorf("group is %+v (error %v), want it to be reconciling with uniform", d, err)
		}
		a.beat() // confirms the revocation
		b.beat()
		b.wantOwned(3)
		c.join()
		w.settle(a, b, c)
		for _, m := range []*consumer{a, b, c} {
			m.wantOwned(2)
		}
		// Topics grow, are deleted and created again.
		ts.set("orders", 9)
		w.settle(a, b, c)
		for _, m := range []*consumer{a, b, c} {
			m.wantOwned(3)
		}
		ts.set("orders", 0)
		w.settle(a, b, c)
		a.wantOwned(0)
		ts.set("orders", 3)
		w.settle(a, b, c)
		a.wantOwned(1)
	})
}

// TestConsumersLeave checks that the partitions of a member go to the others immediately when it
// leaves, and after its session when it crashes.
func TestConsumersLeave(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 6})
		a, b, c := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders"), w.consumer(ts, "c", "orders")
		for _, m := range []*consumer{a, b, c} {
			m.join()
		}
		w.settle(a, b, c)
		w.wantError(c.leave(-1), nil)
		w.settle(a, b)
		a.wantOwned(3)
		w.wantError(c.send(c.full()), groups.ErrUnknownMember)
		for range 12 { // b sends no heartbeats
			time.Sleep(groups.DefaultHeartbeatInterval)
			a.beat()
		}
		a.wantOwned(6)
		w.wantError(b.send(b.full()), groups.ErrUnknownMember)
		w.wantError(a.leave(-1), nil)
		w.wantState("Empty", 0)
		w.wantError(a.leave(-1), groups.ErrUnknownMember)
		w.restart()
		w.wantState("Empty", 0)
		before := a.epoch
		a.join()
		if a.epoch <= before {
			w.Errorf("epoch is %d, want a new one after %d", a.epoch, before)
		}
	})
}

// TestConsumerThatDoesNotRevokeIsRemoved checks that a member that does not revoke its partitions is removed
// at the deadline.
func TestConsumerThatDoesNotRevokeIsRemoved(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 2})
		a, b := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders")
		a.join()
		b.join()
		for range 11 {
			w.wantError(a.send(a.brief()), nil)
			b.beat()
			b.wantOwned(0)
			time.Sleep(groups.DefaultHeartbeatInterval)
		}
		time.Sleep(groups.DefaultHeartbeatInterval)
		synctest.Wait()
		w.wantError(a.send(a.brief()), groups.ErrUnknownMember)
		b.beat()
		b.wantOwned(2)
	})
}

// TestConsumersSurviveARestart checks that epochs, members and assignments survive a restart in any
// state, and that heartbeats write nothing.
func TestConsumersSurviveARestart(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 6})
		all := "ord.*"
		a, b := w.consumer(ts, "a", "orders"), w.consumer(ts, "b")
		b.pattern = &all
		a.join()
		b.join()
		a.beat() // must revoke partitions
		w.restart()
		w.wantState("Reconciling", 2)
		w.settle(a, b)
		a.wantOwned(3)
		epoch, journal := a.epoch, w.journals()
		w.restart()
		w.wantState("Stable", 2)
		time.Sleep(40 * time.Second) // less than the session timeout
		for range 5 {
			w.settle(a, b)
			w.wantError(a.send(a.brief()), nil)
		}
		if a.epoch != epoch || b.epoch != epoch {
			w.Errorf("epochs are %d and %d after a restart, want %d", a.epoch, b.epoch, epoch)
		}
		if now := w.journals(); now != journal {
			w.Errorf("journals are at %d after heartbeats, want no writes after %d", now, journal)
		}
		ts.set("orders", 8) // grows while the coordinator is down
		w.restart()
		w.settle(a, b)
		a.wantOwned(4)
	})
}

func TestFencedConsumers(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		a, b := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders")
		a.join()
		old := *a
		b.join()
		w.settle(a, b)
		ahead := *a
		ahead.epoch++
		w.wantError(ahead.send(ahead.full()), groups.ErrFencedEpoch)
		w.wantError(old.send(old.full()), groups.ErrFencedEpoch) // owns partitions that were revoked
		old.owned = a.owned
		w.wantError(old.send(old.full()), nil) // as after a lost response
		if old.epoch != a.epoch {
			w.Errorf("epoch is %d, want %d again", old.epoch, a.epoch)
		}
		a.join() // gives up all partitions
		w.settle(a, b)
		a.wantOwned(2)

		stranger := w.consumer(ts, "stranger", "orders")
		stranger.epoch = 3
		w.wantError(stranger.send(stranger.full()), groups.ErrUnknownMember)
		w.key.Group = "none"
		w.wantError(stranger.send(stranger.full()), groups.ErrNoGroup)
		w.wantError(stranger.leave(-1), groups.ErrNoGroup)
	})
}

// TestStaticConsumers checks that static members keep their assignment while they are away.
func TestStaticConsumers(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		a, b := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders")
		a.instance, b.instance = "one", "two"
		a.join()
		b.join()
		w.settle(a, b)
		again := w.consumer(ts, "b2", "orders")
		again.instance = "two"
		w.wantError(again.send(again.full()), groups.ErrUnreleasedInstance)
		w.wantError(b.leave(-2), nil)
		a.beat()
		a.wantOwned(2)
		epoch := a.epoch
		w.restart()
		again.join()
		again.wantOwned(2)
		if a.beat(); a.epoch != epoch || again.epoch != epoch {
			w.Errorf("epochs are %d and %d, want no rebalance in %d", a.epoch, again.epoch, epoch)
		}
		w.wantError(b.send(b.full()), groups.ErrFencedInstance)
		w.wantError(b.leave(-1), groups.ErrFencedInstance)
		w.wantError(again.leave(-2), nil)
		for range 12 { // the member does not return
			time.Sleep(groups.DefaultHeartbeatInterval)
			a.beat()
		}
		a.wantOwned(4)
	})
}

// TestStaticConsumersAreExpelled checks that an administrator can remove members by id and static members by
// their instance id, also across a restart.
func TestStaticConsumersAreExpelled(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		a, b := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders")
		c, d := w.consumer(ts, "c", "orders"), w.consumer(ts, "d", "orders")
		b.instance, d.instance = "two", "four"
		for _, m := range []*consumer{a, b, c, d} {
			m.join()
		}
		w.settle(a, b, c, d)
		failed, err := w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{
			{InstanceID: "nobody"},
			{MemberID: "nobody"},
			{MemberID: "a", InstanceID: "two"},
			{InstanceID: "two"},
			{MemberID: "c"},
			{MemberID: "d", InstanceID: "four"},
		})
		w.wantError(err, nil)
		for i, want := range []error{
			groups.ErrUnknownMember, groups.ErrUnknownMember, groups.ErrFencedInstance, nil, nil, nil,
		} {
			w.wantError(failed[i], want)
		}
		w.restart()
		for _, m := range []*consumer{b, c, d} {
			w.wantError(m.send(m.full()), groups.ErrUnknownMember)
		}
		w.settle(a)
		a.wantOwned(4)
	})
}

func TestConsumersSubscribeByPattern(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders-eu": 1, "orders-us": 1, "my-orders-x": 1, "orders-secret": 1})
		ts.hidden["orders-secret"] = true
		pattern := "orders-.*"
		a := w.consumer(ts, "a")
		a.pattern = &pattern
		a.join()
		a.wantOwned(2) // the whole name must match
		ts.set("orders-asia", 1)
		w.settle(a)
		a.wantOwned(3)
		delete(ts.hidden, "orders-secret") // a permission changes, but no topic
		time.Sleep(30 * time.Second)
		a.beat()
		time.Sleep(31 * time.Second)
		w.wantError(a.send(a.brief()), nil)
		a.wantOwned(4)
		none := ""
		a.pattern, a.names = &none, []string{"orders-eu"}
		w.settle(a)
		a.wantOwned(1)
		for _, bad := range []string{
			"orders-(", "a)|(b", "(?=x)", string(make([]byte, 2000)),
			strings.Repeat(".{1000}", 50),
		} {
			b := w.consumer(ts, "b")
			b.pattern = &bad
			w.wantError(b.send(b.full()), groups.ErrPattern)
		}
	})
}

func TestAssignorChanges(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"x": 3, "y": 3})
		a, b := w.consumer(ts, "a", "x", "y"), w.consumer(ts, "b", "x", "y")
		a.join()
		b.join()
		w.settle(a, b)
		a.wantOwned(3)
		epoch := a.epoch
		a.assignor, b.assignor = "range", "range"
		w.settle(a, b)
		a.wantOwned(4) // the larger part of both
		b.wantOwned(2)
		if a.epoch == epoch {
			w.Errorf("epoch is still %d, want another after a change of assignor", epoch)
		}
		for _, p := range a.owned {
			if p.Partition > 1 {
				w.Errorf("a has %v, want the first two of each topic", a.owned)
			}
		}
		a.assignor = "best"
		w.wantError(a.send(a.full()), groups.ErrAssignor)
	})
}

// TestEmptyGroupChangesProtocol checks that an empty group can change its protocol, and that a group with members
// that cannot be decoded as consumers rejects members with the other protocol.
func TestEmptyGroupChangesProtocol(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 1})
		a := w.consumer(ts, "a", "orders")
		classic := w.stable(request(""))[0]
		w.wantError(a.send(a.full()), groups.ErrNoGroup)
		w.wantState("Stable", 1)
		_, err := w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{{MemberID: classic.MemberID}})
		w.wantError(err, nil)
		a.join()
		a.wantOwned(1)
		_, err = w.Join(w.Context(), w.key, request(""))
		w.wantError(err, groups.ErrProtocol)
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, classic.MemberID, "", 1), groups.ErrUnknownMember)
		w.wantError(w.Delete(w.Context(), w.key, nil), groups.ErrNotEmpty)
		w.restart()
		w.wantState("Stable", 1)
		if all := w.List("public"); len(all) != 1 || all[0].Type != groups.TypeConsumer || all[0].State != "Stable" {
			w.Errorf("groups are %v, want one with the consumer protocol", all)
		}
		w.wantError(a.leave(-1), nil)
		w.restart()
		w.wantState("Empty", 0)
		if r := w.stable(request("")); r[0].Generation <= a.epoch {
			w.Errorf("generation is %d, want one after epoch %d", r[0].Generation, a.epoch)
		}
		w.restart()
		w.wantState("Stable", 1)
		if all := w.List("public"); len(all) != 1 || all[0].Type != groups.TypeClassic {
			w.Errorf("groups are %v, want one with the classic protocol", all)
		}
	})
}

// TestConsumersCommit checks that members commit with their epoch, or with an older epoch in which
// they already had the partition.
func TestConsumersCommit(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 2})
		a, b := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders")
		a.join()
		first := a.epoch
		mine := a.owned
		b.join()
		w.settle(a, b)
		commit := func(id string, epoch int32, modern bool, p groups.Partition) error {
			return w.Commit(w.Context(), w.key,
				&groups.CommitRequest{
					MemberID: id, Generation: epoch, SupportsMemberEpochs: modern,
					Offsets: map[groups.Partition]groups.Offset{p: {Offset: 1}},
				})
		}
		kept, lost := a.owned[0], b.owned[0]
		if !slices.Contains(mine, lost) {
			w.Fatalf("b has %v, want one of a's former partitions %v", lost, mine)
		}
		w.wantError(commit("a", a.epoch, true, kept), nil)
		w.wantError(commit("a", first, true, kept), nil)
		w.wantError(commit("a", first, true, lost), groups.ErrStaleEpoch)
		w.wantError(commit("a", a.epoch+1, true, kept), groups.ErrStaleEpoch)
		w.wantError(commit("b", first, true, lost), groups.ErrStaleEpoch)
		w.wantError(commit("a", a.epoch, false, kept), groups.ErrCommitVersion)
		w.wantError(commit("x", a.epoch, true, kept), groups.ErrUnknownMember)
		w.wantError(commit("", -1, true, kept), groups.ErrUnknownMember)
		w.wantError(w.CheckMember(w.key, groups.Caller{}, "a", a.epoch), nil)
		w.wantError(w.CheckMember(w.key, groups.Caller{}, "a", first), groups.ErrStaleEpoch)
		w.wantError(w.CheckMember(w.key, groups.Caller{}, "x", first), groups.ErrUnknownMember)
		w.key.Group = "none"
		w.wantError(commit("a", 1, true, kept), groups.ErrNoGroup)
	})
}

func TestBadConsumerRequests(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 1, "huge": 200_000})
		for _, c := range []struct {
			name   string
			change func(*groups.ConsumerRequest)
			want   error
		}{
			{"no id", func(r *groups.ConsumerRequest) { r.MemberID = "" }, groups.ErrInvalidHeartbeat},
			{
				"no rebalance timeout", func(r *groups.ConsumerRequest) { r.RebalanceTimeout = -1 },
				groups.ErrInvalidHeartbeat,
			},
			{"no subscription", func(r *groups.ConsumerRequest) { r.Names = nil }, groups.ErrInvalidHeartbeat},
			{
				"owns something", func(r *groups.ConsumerRequest) { r.Owned = []groups.Partition{{}} },
				groups.ErrInvalidHeartbeat,
			},
			{
				"no list of owned partitions", func(r *groups.ConsumerRequest) { r.Owned = nil },
				groups.ErrInvalidHeartbeat,
			},
			{"epoch", func(r *groups.ConsumerRequest) { r.Epoch = -3 }, groups.ErrInvalidHeartbeat},
			{
				"leaves for a while without an instance id", func(r *groups.ConsumerRequest) { r.Epoch = -2 },
				groups.ErrInvalidHeartbeat,
			},
			{"many topics", func(r *groups.ConsumerRequest) { r.Names = make([]string, 10_001) }, groups.ErrTooLarge},
			{
				"many bytes", func(r *groups.ConsumerRequest) { r.Names = []string{string(make([]byte, 300<<10))} },
				groups.ErrTooLarge,
			},
			{
				"many partitions", func(r *groups.ConsumerRequest) { r.Names = []string{"huge"} },
				groups.ErrTooManyPartitions,
			},
		} {
			req := w.consumer(ts, "a", "orders").full()
			c.change(req)
			_, err := w.ConsumerHeartbeat(w.Context(), w.key, req)
			w.wantError(err, c.want)
		}
		if all := w.List("public"); len(all) != 0 {
			w.Errorf("rejected requests left groups %v, want none", all)
		}
	})
}

// TestDifferentSubscriptions checks that no member gets partitions that it does not subscribe to,
// and that the loads are balanced.
func TestDifferentSubscriptions(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"x": 4, "y": 4})
		a, b, c := w.consumer(ts, "a", "x"), w.consumer(ts, "b", "x", "y"), w.consumer(ts, "c", "y")
		for _, m := range []*consumer{b, a, c} {
			m.join()
			w.exclusive(a, b, c)
		}
		w.settle(a, b, c)
		total := 0
		for _, m := range []*consumer{a, b, c} {
			total += len(m.owned)
			if n := len(m.owned); n < 2 || n > 3 {
				w.Errorf("%s has %v, want 2 or 3 of 8", m.id, m.owned)
			}
			for _, p := range m.owned {
				if m == a && p.Topic != ts.ids["x"] || m == c && p.Topic != ts.ids["y"] {
					w.Errorf("%s has %v, which it does not subscribe to", m.id, p)
				}
			}
		}
		if total != 8 {
			w.Errorf("%d partitions are assigned, want 8", total)
		}
	})
}

// TestConsumersAtOnce checks that members that join concurrently share journal writes and all get
// partitions, which they keep after a restart.
func TestConsumersAtOnce(t *testing.T) {
	inBubble(t, func(w *harness) {
		const n = 50
		ts := newTopics(map[string]int32{"orders": 2 * n})
		members := make([]*consumer, n)
		var wg sync.WaitGroup
		for i := range members {
			m := w.consumer(ts, fmt.Sprintf("m%02d", i), "orders")
			members[i] = m
			wg.Go(func() {
				for range 10 {
					if err := m.send(m.full()); err != nil {
						w.Errorf("%s: %v", m.id, err)
					}
					time.Sleep(groups.DefaultHeartbeatInterval)
				}
			})
		}
		wg.Wait()
		w.exclusive(members...)
		w.wantState("Stable", n)
		if records := w.journals(); records > 10*n {
			w.Errorf("%d records were written for %d members, want them to share writes", records, n)
		}
		w.restart()
		for _, m := range members {
			epoch := m.epoch
			m.wantOwned(2)
			if m.beat(); m.epoch != epoch {
				w.Errorf("%s is in epoch %d after a restart, want %d", m.id, m.epoch, epoch)
			}
		}
	})
}
