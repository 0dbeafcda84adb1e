package groups_test

import (
	"slices"
	"sync"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/test/tally"
)

// as returns a caller who may use groups that read only these topics.
func as(principal string, topics ...string) groups.Caller {
	return groups.Caller{Principal: principal, May: func(reads groups.Reads) error {
		if reads.Unknown || slices.ContainsFunc(reads.Topics,
			func(t names.Topic) bool { return !slices.Contains(topics, t.Local) }) {
			return groups.ErrDenied
		}
		return nil
	}}
}

// subscribed returns a request of a caller to join with subscriptions.
func subscribed(caller groups.Caller, id string, topics ...string) *groups.JoinRequest {
	r := request(id)
	r.Caller = caller
	for _, topic := range topics {
		r.Subscribed = append(r.Subscribed, publicTopic(topic))
	}
	return r
}

// TestMembersBelongToPrincipals checks that only the principal that joined can use a member id, also after a restart
// of the coordinator, and when the group changes its protocol.
func TestMembersBelongToPrincipals(t *testing.T) {
	inBubble(t, func(w *harness) {
		alice, bob := as("alice", "orders"), as("bob", "orders")
		joined := w.joined(w.join(subscribed(alice, "", "orders")))[0]
		id, generation := joined.MemberID, joined.Generation
		_, err := w.Sync(w.Context(), w.key, &groups.SyncRequest{MemberID: id, Generation: generation, Caller: bob})
		w.wantError(err, groups.ErrUnknownMember)
		_, err = w.Sync(w.Context(), w.key, &groups.SyncRequest{MemberID: id, Generation: generation, Caller: alice})
		w.wantError(err, nil)
		for range 2 {
			w.wantError(w.Heartbeat(w.key, bob, id, "", generation), groups.ErrUnknownMember)
			w.wantError(w.Heartbeat(w.key, as("bob"), id, "", generation), groups.ErrUnknownMember)
			w.wantError(w.Commit(w.Context(), w.key, &groups.CommitRequest{
				MemberID: id, Generation: generation, Caller: bob,
			}), groups.ErrUnknownMember)
			_, err = w.Join(w.Context(), w.key, subscribed(bob, id, "orders"))
			w.wantError(err, groups.ErrUnknownMember)
			left, err := w.Leave(w.key, bob, []groups.LeavingMember{{MemberID: id}})
			w.wantError(err, nil)
			w.wantError(left[0], groups.ErrUnknownMember)
			w.wantError(w.Heartbeat(w.key, as("alice"), id, "", generation), groups.ErrDenied)
			w.wantError(w.Heartbeat(w.key, alice, id, "", generation), nil)
			reads, err := w.Reads(w.key)
			w.wantError(err, nil)
			if !slices.Equal(reads.Topics, []names.Topic{publicTopic("orders")}) || reads.Unknown {
				t.Errorf("group reads %+v, want the topic orders", reads)
			}
			w.restart()
		}
	})
}

// TestConsumersBelongToPrincipals is TestMembersBelongToPrincipals for members with the consumer protocol.
func TestConsumersBelongToPrincipals(t *testing.T) {
	inBubble(t, func(w *harness) {
		alice, bob := as("alice", "orders"), as("bob", "orders")
		a := w.consumer(newTopics(map[string]int32{"orders": 2}), "a", "orders")
		send := func(caller groups.Caller, epoch int32) error {
			req := a.full()
			req.Caller, req.Epoch = caller, epoch
			if epoch == 0 {
				req.Owned = []groups.Partition{}
			}
			result, err := w.ConsumerHeartbeat(w.Context(), w.key, req)
			if err == nil {
				a.epoch = result.Epoch
			}
			return err
		}
		w.wantError(send(alice, 0), nil)
		for range 2 {
			for _, epoch := range []int32{0, a.epoch, -1} {
				w.wantError(send(bob, epoch), groups.ErrUnknownMember)
			}
			w.wantError(w.Commit(w.Context(), w.key, &groups.CommitRequest{
				MemberID: "a", Generation: a.epoch, SupportsMemberEpochs: true, Caller: bob,
			}), groups.ErrUnknownMember)
			w.wantError(w.CheckMember(w.key, bob, "a", a.epoch), groups.ErrUnknownMember)
			w.wantError(send(as("alice"), a.epoch), groups.ErrDenied)
			w.wantError(send(alice, a.epoch), nil)
			w.restart()
		}
	})
}

// TestMembersOfAnEarlierVersion checks that a group that an earlier version stored, without principals, continues: the
// first principal that uses a member id owns it.
func TestMembersOfAnEarlierVersion(t *testing.T) {
	inBubble(t, func(w *harness) {
		subscription := []byte("\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff")
		req := request("")
		req.Protocols[0].Metadata = subscription
		joined := w.joined(w.join(req))[0] // without a principal the record is that of an earlier version
		_, err := w.Sync(w.Context(), w.key, &groups.SyncRequest{MemberID: joined.MemberID, Generation: 1})
		w.wantError(err, nil)
		w.restart()
		reads, err := w.Reads(w.key)
		w.wantError(err, nil)
		if !slices.Equal(reads.Names, []string{"orders"}) || reads.Unknown {
			t.Errorf("group reads %+v, want the name that the member sent", reads)
		}
		w.wantError(w.Heartbeat(w.key, as("alice"), joined.MemberID, "", 1), nil)
		w.wantError(w.Heartbeat(w.key, as("bob"), joined.MemberID, "", 1), groups.ErrUnknownMember)
	})
}

// TestAttackFirstUseOfAGroup checks that of principals who use a new group at the same time, for topics that the
// others may not consume, only one gets it: the check and the change are one step.
func TestAttackFirstUseOfAGroup(t *testing.T) {
	inBubble(t, func(w *harness) {
		const rounds = 50
		successes := 0
		for round := range rounds {
			key := groups.Key{Tenant: "public", Group: "g" + string(rune('0'+round%10)) + string(rune('a'+round/10))}
			var done sync.WaitGroup
			won := make([]bool, 4)
			for n := range won {
				i := (n + round) % len(won)
				done.Go(func() {
					topic := string(rune('a' + i))
					caller := mayUseIDs(as(topic, topic), uint64(i))
					if i%2 == 0 {
						_, err := w.Join(w.Context(), key, &groups.JoinRequest{
							SessionTimeout: 10e9, Type: "consumer", Caller: caller,
							Protocols:  []groups.Protocol{{Name: "range"}},
							Subscribed: []names.Topic{publicTopic(topic)},
						})
						won[i] = err == nil
						return
					}
					won[i] = w.Commit(w.Context(), key, &groups.CommitRequest{
						Generation: -1, Caller: caller, Topics: []names.Topic{publicTopic(topic)},
						Offsets: map[groups.Partition]groups.Offset{groups.PartitionOf(uint64(i), 0): {}},
					}) == nil
				})
			}
			done.Wait()
			reads, err := w.Reads(key)
			w.wantError(err, nil)
			if n := len(reads.Topics) + len(reads.IDs); n != 1 {
				successes++
				t.Errorf("round %d: winners %v, group reads %+v; want one topic", round, won, reads)
			}
		}
		tally.Attack(t, "first use of a consumer group at the same time", rounds, successes)
	})
}

// mayUseIDs limits a caller to groups with committed offsets for one topic.
func mayUseIDs(caller groups.Caller, id uint64) groups.Caller {
	may := caller.May
	caller.May = func(reads groups.Reads) error {
		for _, other := range reads.IDs {
			if uint64(other) != id {
				return groups.ErrDenied
			}
		}
		return may(reads)
	}
	return caller
}
