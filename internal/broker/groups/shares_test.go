package groups_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
)

// shareClient is a member of a share group in tests.
type shareClient struct {
	w      *harness
	id     string
	epoch  int32
	topics []groups.ShareTopic
	parts  []groups.Partition
}

func (m *shareClient) request(subscribed []string) *groups.ShareRequest {
	return &groups.ShareRequest{
		MemberID: m.id, Epoch: m.epoch, Names: subscribed, Principal: "p-" + m.id,
		Resolve: func([]string, []groups.ShareTopic) ([]groups.ShareTopic, error) { return m.topics, nil },
	}
}

// beat sends a heartbeat and adopts its result.
func (m *shareClient) beat(t *testing.T, subscribed ...string) {
	t.Helper()
	got, err := m.w.ShareHeartbeat(m.w.key, m.request(subscribed))
	if err != nil {
		t.Fatalf("heartbeat of %s: %v", m.id, err)
	}
	m.epoch = got.Epoch
	if got.HasAssignment {
		m.parts = got.Assignment
	}
}

// TestShareAssignment checks that every partition has a member, that every member has a partition, and that the
// members of a group follow its epoch.
func TestShareAssignment(t *testing.T) {
	inBubble(t, func(w *harness) {
		for _, partitions := range []int32{1, 3, 7} {
			topic := groups.ShareTopic{ID: engine.TopicID(partitions), Partitions: partitions}
			var all []*shareClient
			for i := range 5 {
				id := fmt.Sprint("m", i, "-", partitions)
				all = append(all, &shareClient{w: w, id: id, topics: []groups.ShareTopic{topic}})
				all[i].beat(w.T, "t")
			}
			held := make(map[groups.Partition]int)
			for _, m := range all {
				m.beat(w.T)
				if len(m.parts) == 0 {
					w.Errorf("%d partitions: %s has none", partitions, m.id)
				}
				for _, p := range m.parts {
					held[p]++
				}
			}
			if len(held) != int(partitions) {
				w.Errorf("%d partitions: members have %v", partitions, held)
			}
			last := all[4]
			last.epoch = -1
			last.beat(w.T)
			all[0].beat(w.T)
			if d, err := w.DescribeShare(w.key); err != nil || len(d.Members) != 4 || d.Epoch != all[0].epoch {
				w.Errorf("described %+v, %v; want 4 members in epoch %d", d, err, all[0].epoch)
			}
			for _, m := range all[:4] {
				m.epoch = -1
				m.beat(w.T)
			}
		}
		if err := w.CheckNoShareMembers(w.key); err != nil {
			w.Errorf("group has members: %v", err)
		}
	})
}

// TestShareFencing checks which heartbeats a group rejects, and that a member whose response was lost gets its
// assignment again.
func TestShareFencing(t *testing.T) {
	inBubble(t, func(w *harness) {
		topic := groups.ShareTopic{ID: 1, Partitions: 2}
		one := &shareClient{w: w, id: "one", topics: []groups.ShareTopic{topic}}
		one.beat(w.T, "t")
		first := one.epoch
		two := &shareClient{w: w, id: "two", topics: []groups.ShareTopic{topic}}
		two.beat(w.T, "t")
		one.beat(w.T)
		lost, err := w.ShareHeartbeat(w.key, &groups.ShareRequest{MemberID: "one", Epoch: first, Principal: "p-one"})
		if err != nil || !lost.HasAssignment || !slices.Equal(lost.Assignment, one.parts) {
			w.Errorf("heartbeat with the previous epoch: %+v, %v; want the assignment %v again", lost, err, one.parts)
		}
		for _, test := range []struct {
			name string
			req  groups.ShareRequest
			want error
		}{
			{"unknown member", groups.ShareRequest{MemberID: "three", Epoch: 1}, groups.ErrUnknownMember},
			{"leaving twice", groups.ShareRequest{MemberID: "three", Epoch: -1}, groups.ErrUnknownMember},
			{
				"other account",
				groups.ShareRequest{MemberID: "one", Epoch: one.epoch, Principal: "p-two"},
				groups.ErrUnknownMember,
			},
			{
				"other account joins",
				groups.ShareRequest{MemberID: "one", Names: []string{"t"}, Principal: "x"},
				groups.ErrUnknownMember,
			},
			{
				"other account leaves",
				groups.ShareRequest{MemberID: "one", Epoch: -1, Principal: "x"},
				groups.ErrUnknownMember,
			},
			{
				"future epoch",
				groups.ShareRequest{MemberID: "one", Epoch: 99, Principal: "p-one"},
				groups.ErrFencedEpoch,
			},
			{"no member id", groups.ShareRequest{Names: []string{"t"}}, groups.ErrInvalidHeartbeat},
			{"no topics", groups.ShareRequest{MemberID: "three"}, groups.ErrInvalidHeartbeat},
			{"epoch out of range", groups.ShareRequest{MemberID: "one", Epoch: -2}, groups.ErrInvalidHeartbeat},
			{"too many topics", groups.ShareRequest{MemberID: "x", Names: make([]string, 10_001)}, groups.ErrTooLarge},
		} {
			if _, err := w.ShareHeartbeat(w.key, &test.req); !errors.Is(err, test.want) {
				w.Errorf("%s: got %v, want %v", test.name, err, test.want)
			}
		}
	})
}

// TestShareLimits checks that one account cannot fill a group: the members of others can still join.
func TestShareLimits(t *testing.T) {
	inBubble(t, func(w *harness) {
		var topics []groups.ShareTopic
		for i := range 20 {
			topics = append(topics, groups.ShareTopic{ID: engine.TopicID(i + 1), Partitions: 1}) //nolint:gosec // small
		}
		join := func(id, principal string) error {
			_, err := w.ShareHeartbeat(w.key, &groups.ShareRequest{
				MemberID: id, Names: []string{"t"}, Principal: principal,
				Resolve: func([]string, []groups.ShareTopic) ([]groups.ShareTopic, error) { return topics, nil },
			})
			return err
		}
		for i := range 1000 {
			if err := join(fmt.Sprint(i), "one"); err != nil {
				w.Fatalf("member %d: %v", i, err)
			}
		}
		if err := join("late", "one"); !errors.Is(err, groups.ErrGroupFull) {
			w.Errorf("member 1001 of an account: %v, want %v", err, groups.ErrGroupFull)
		}
		if err := join("other", "two"); err != nil {
			w.Errorf("member of another account: %v", err)
		}
	})
}

// TestShareSessions checks that members without heartbeats leave, and that the others get their partitions.
func TestShareSessions(t *testing.T) {
	inBubble(t, func(w *harness) {
		topic := groups.ShareTopic{ID: 1, Partitions: 4}
		live := &shareClient{w: w, id: "live", topics: []groups.ShareTopic{topic}}
		dead := &shareClient{w: w, id: "dead", topics: []groups.ShareTopic{topic}}
		live.beat(w.T, "t")
		dead.beat(w.T, "t")
		for range 10 {
			live.beat(w.T)
			if len(live.parts) != 2 {
				w.Fatalf("member has %v, want 2 partitions", live.parts)
			}
			time.Sleep(4 * time.Second)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		live.beat(w.T)
		if len(live.parts) != 4 {
			w.Errorf("member has %v after the other one expired, want 4 partitions", live.parts)
		}
		time.Sleep(2 * time.Minute)
		if err := w.CheckNoShareMembers(w.key); err != nil {
			w.Errorf("after all sessions: %v, want no members", err)
		}
		live.epoch = 0
		live.beat(w.T, "t")
	})
}
