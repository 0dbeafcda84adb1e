package groups_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
)

// classicMetadata is the metadata of a classic consumer in these tests.
type classicMetadata struct {
	Names []string
	Owned []groups.Partition
}

// Subscription implements groups.ClassicCodec.
func (ts *topics) Subscription(metadata []byte, _ bool) (found groups.ClassicSubscription, err error) {
	var m classicMetadata
	if err := json.Unmarshal(metadata, &m); err != nil {
		return found, err
	}
	found.Names, found.Owned = m.Names, m.Owned
	resolved, err := ts.Resolve(m.Names, nil)
	found.Topics = resolved.Topics
	return found, err
}

// Assignment implements groups.ClassicCodec.
func (ts *topics) Assignment(assignment []byte) (parts []groups.Partition, err error) {
	if len(assignment) == 0 {
		return nil, nil
	}
	return parts, json.Unmarshal(assignment, &parts)
}

// classicConsumer is a consumer with the classic protocol. It revokes partitions immediately.
type classicConsumer struct {
	*harness
	ts         *topics
	id         string
	generation int32
	names      []string
	owned      []groups.Partition
}

func (c *classicConsumer) request() *groups.JoinRequest {
	metadata, _ := json.Marshal(classicMetadata{c.names, c.owned})
	req := request(c.id)
	req.Protocols[0].Metadata, req.Topics, req.Classic = metadata, c.ts, c.ts
	return req
}

// join joins and gets the assignment of a group with the consumer protocol.
func (c *classicConsumer) join() {
	c.Helper()
	result, err := c.Join(c.Context(), c.key, c.request())
	c.wantError(err, nil)
	c.id, c.generation = result.MemberID, result.Generation
	c.sync()
}

func (c *classicConsumer) sync() {
	c.Helper()
	got, err := c.Sync(c.Context(), c.key, &groups.SyncRequest{
		MemberID: c.id, Generation: c.generation, Type: "consumer", Protocol: "range", NamesProtocol: true,
	})
	c.wantError(err, nil)
	if got.Assigned == nil {
		c.Fatalf("got %+v, want partitions", got)
	}
	c.owned = got.Assigned.Partitions
}

// settleMixed sends heartbeats of both protocols, and joins again when a classic member has to, until
// nothing changes. It checks that no partition has two owners.
func settleMixed(classic []*classicConsumer, members ...*consumer) {
	w := members[0].harness
	w.Helper()
	for range 12 {
		before := fmt.Sprint(epochs(members))
		for _, c := range classic {
			if err := c.Heartbeat(c.key, groups.Caller{}, c.id, "", c.generation); err != nil {
				w.wantError(err, groups.ErrRebalancing)
				c.join()
			}
			before += fmt.Sprint(c.owned)
		}
		for _, m := range members {
			m.beat()
		}
		after := fmt.Sprint(epochs(members))
		owned := slices.Clone(members[0].owned)
		for _, m := range members[1:] {
			owned = append(owned, m.owned...)
		}
		for _, c := range classic {
			after += fmt.Sprint(c.owned)
			owned = append(owned, c.owned...)
		}
		seen := make(map[groups.Partition]bool)
		for _, p := range owned {
			if seen[p] {
				w.Fatalf("partition %v has two owners: %v", p, owned)
			}
			seen[p] = true
		}
		if d, err := w.Describe(w.key); err == nil && d.State == "Stable" && before == after {
			return
		}
	}
	d, err := w.Describe(w.key)
	w.Fatalf("group is %+v (error %v) after many heartbeats, want it stable", d, err)
}

func allPartitions(topic engine.TopicID, n int32) (all []groups.Partition) {
	for p := range n {
		all = append(all, groups.Partition{Topic: topic, Partition: p})
	}
	return all
}

// classicGroup returns a member alone in a classic group, with all partitions of orders.
func classicGroup(w *harness, ts *topics) *classicConsumer {
	w.Helper()
	c := &classicConsumer{harness: w, ts: ts, names: []string{"orders"}}
	joined := w.joined(w.join(c.request()))[0]
	c.id, c.generation = joined.MemberID, joined.Generation
	found, err := ts.Resolve(c.names, nil)
	w.wantError(err, nil)
	c.owned = allPartitions(found.Topics[0], ts.Partitions(found.Topics[0]))
	assignment, _ := json.Marshal(c.owned)
	_, err = w.Sync(w.Context(), w.key, &groups.SyncRequest{
		MemberID: c.id, Generation: c.generation, Assignments: map[string][]byte{c.id: assignment},
	})
	w.wantError(err, nil)
	return c
}

func (w *harness) wantType(want string) {
	w.Helper()
	if d, err := w.Describe(w.key); err != nil || d.Type != want {
		w.Fatalf("group is of type %s (error %v), want %s", d.Type, err, want)
	}
}

// TestConsumerJoinsClassicGroup checks that a live classic group takes a member with the consumer protocol, shares
// its partitions with it, survives a restart, and becomes classic again when that member leaves.
func TestConsumerJoinsClassicGroup(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		c := classicGroup(w, ts)
		m := w.consumer(ts, "m", "orders")
		m.join()
		m.wantOwned(0) // the classic member has them all
		w.wantType(groups.TypeConsumer)
		w.wantError(c.Heartbeat(c.key, groups.Caller{}, c.id, "", c.generation), groups.ErrRebalancing)
		settleMixed([]*classicConsumer{c}, m)
		m.wantOwned(2)
		if len(c.owned) != 2 {
			t.Errorf("classic member has %v, want 2 partitions", c.owned)
		}
		at := c.owned[0]
		commit := func(generation int32) error {
			return w.Commit(w.Context(), w.key, &groups.CommitRequest{
				MemberID: c.id, Generation: generation, Offsets: map[groups.Partition]groups.Offset{at: {Offset: 1}},
			})
		}
		w.wantError(commit(c.generation), nil)
		w.wantError(commit(c.generation-1), groups.ErrGeneration)
		w.restart()
		w.wantError(c.Heartbeat(c.key, groups.Caller{}, c.id, "", c.generation), nil)
		c.sync()
		settleMixed([]*classicConsumer{c}, m)
		m.wantOwned(2)

		w.wantError(m.leave(-1), nil)
		w.wantType(groups.TypeClassic)
		c.owned = nil
		again := w.joined(w.join(c.request()))[0]
		if again.Generation <= c.generation || again.Leader != c.id {
			t.Errorf("got %+v, want a later generation with the member as leader", again)
		}
		w.sync(again)
		w.restart()
		w.wantType(groups.TypeClassic)
		w.wantState("Stable", 1)
	})
}

// TestClassicConsumerJoins checks that a classic consumer joins a live group with the consumer protocol, and that
// the group becomes empty when its members leave in either order.
func TestClassicConsumerJoins(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		m := w.consumer(ts, "m", "orders")
		m.join()
		w.settle(m)
		c := &classicConsumer{harness: w, ts: ts, names: []string{"orders"}}
		req := c.request()
		req.RequireMemberID = true
		asked, err := w.Join(w.Context(), w.key, req)
		w.wantError(err, groups.ErrMemberIDRequired)
		c.id = asked.MemberID
		c.join()
		settleMixed([]*classicConsumer{c}, m)
		m.wantOwned(2)
		other := c.request()
		other.MemberID, other.Type = "", "connect"
		_, err = w.Join(w.Context(), w.key, other)
		w.wantError(err, groups.ErrProtocol)
		other = c.request()
		other.MemberID, other.Protocols[0].Name = "", "other"
		_, err = w.Join(w.Context(), w.key, other)
		w.wantError(err, groups.ErrProtocol)
		_, err = w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{{MemberID: c.id}})
		w.wantError(err, nil)
		w.settle(m)
		m.wantOwned(4)
		w.wantError(m.leave(-1), nil)
		w.wantState("Empty", 0)
	})
}

// TestSilentClassicConsumerIsRemoved checks that a classic member that does not join again in time loses its
// partitions, and that its session timeout is its own.
func TestSilentClassicConsumerIsRemoved(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		classicGroup(w, ts)
		m := w.consumer(ts, "m", "orders")
		m.join()
		time.Sleep(11 * time.Second) // the session timeout of the classic member
		synctest.Wait()
		w.settle(m)
		m.wantOwned(4)
	})
}

// TestStaticMemberChangesProtocol checks that a process with an instance id can be replaced by one with the other
// protocol, which gets its partitions.
func TestStaticMemberChangesProtocol(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 4})
		c := &classicConsumer{harness: w, ts: ts, names: []string{"orders"}}
		static := func() *groups.JoinRequest {
			req := c.request()
			req.InstanceID = "one"
			return req
		}
		joined := w.joined(w.join(static()))[0]
		found, err := ts.Resolve(c.names, nil)
		w.wantError(err, nil)
		assignment, _ := json.Marshal(allPartitions(found.Topics[0], 4))
		_, err = w.Sync(w.Context(), w.key, &groups.SyncRequest{
			MemberID: joined.MemberID, InstanceID: "one", Generation: joined.Generation,
			Assignments: map[string][]byte{joined.MemberID: assignment},
		})
		w.wantError(err, nil)

		m := w.consumer(ts, "m", "orders")
		m.instance = "one"
		m.join()
		w.settle(m)
		m.wantOwned(4)
		w.wantError(w.Heartbeat(w.key, groups.Caller{}, joined.MemberID, "one", joined.Generation),
			groups.ErrFencedInstance)

		again, err := w.Join(w.Context(), w.key, static())
		w.wantError(err, nil)
		w.wantType(groups.TypeClassic)
		c.id = again.MemberID
		final := w.joined(w.join(static()))[0]
		if final.MemberID != c.id || final.Generation <= m.epoch {
			t.Errorf("got %+v, want member %s in a generation after %d", final, c.id, m.epoch)
		}
	})
}
