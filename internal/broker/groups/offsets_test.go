package groups_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
)

func TestOffsets(t *testing.T) {
	inBubble(t, func(w *harness) {
		at := func(topic engine.TopicID, p int32) groups.Partition {
			return groups.Partition{Topic: topic, Partition: p}
		}
		commit := func(id string, generation int32, offset int64, parts ...groups.Partition) error {
			offsets := make(map[groups.Partition]groups.Offset)
			for _, p := range parts {
				offsets[p] = groups.Offset{Offset: offset, LeaderEpoch: -1, Metadata: "m"}
			}
			return w.Commit(w.Context(), w.key,
				&groups.CommitRequest{MemberID: id, Generation: generation, Offsets: offsets})
		}
		want := func(p groups.Partition, offset int64) {
			w.Helper()
			committed, err := w.Committed(w.key)
			w.wantError(err, nil)
			got, ok := committed.Offset(p)
			if offset < 0 && ok || offset >= 0 &&
				(got.Offset != offset || got.Metadata != "m" || got.LeaderEpoch != -1) {
				w.Errorf("offset of %v is %+v, want %d", p, got, offset)
			}
		}
		w.wantError(commit("", -1, 5, at(1, 0), at(1, 1)), nil) // allowed because the group has no members
		w.wantState("Empty", 0)
		want(at(1, 1), 5)
		r := w.stable(request(""))[0]
		w.wantError(commit("", -1, 6, at(1, 0)), groups.ErrUnknownMember)
		w.wantError(commit(r.MemberID, 9, 6, at(1, 0)), groups.ErrGeneration)
		w.wantError(commit(r.MemberID, 1, 6, at(1, 0), at(2, 0)), nil)
		w.restart()
		want(at(1, 0), 6)
		want(at(1, 1), 5)
		want(at(2, 0), 6)
		want(at(2, 1), -1)
		var all []groups.Partition
		committed, err := w.Committed(w.key)
		w.wantError(err, nil)
		committed.Each(func(p groups.Partition, _ groups.Offset) { all = append(all, p) })
		if got := committed.Topics(); !slices.Equal(got, []uint64{1, 2}) {
			w.Errorf("topics with offsets: got %v, want 1 and 2", got)
		}
		if !slices.Equal(all, []groups.Partition{at(1, 0), at(1, 1), at(2, 0)}) {
			w.Errorf("offsets of %v are committed, want those of 1/0, 1/1 and 2/0", all)
		}
		w.wantError(w.DeleteOffsets(w.Context(), w.key, []groups.Partition{at(1, 0)}, nil), nil)
		want(at(1, 0), -1)

		w.wantError(w.Delete(w.Context(), w.key, nil), groups.ErrNotEmpty)
		_, err = w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{{MemberID: r.MemberID}})
		w.wantError(err, nil)
		w.wantError(w.Delete(w.Context(), w.key, nil), nil)
		want(at(2, 0), -1)
		_, err = w.Describe(w.key)
		w.wantError(err, groups.ErrNoGroup)
	})
}

// TestUnusedGroupsExpire checks that a group without members expires seven days after the last
// commit.
func TestUnusedGroupsExpire(t *testing.T) {
	inBubble(t, func(w *harness) {
		p := groups.Partition{Topic: 1}
		w.wantError(w.Commit(w.Context(), w.key,
			&groups.CommitRequest{Generation: -1, Offsets: map[groups.Partition]groups.Offset{p: {Offset: 1}}}), nil)
		time.Sleep(7*24*time.Hour - 2*time.Hour)
		synctest.Wait()
		if !w.committed(p) {
			w.Fatal("offset was deleted before its retention ended")
		}
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if w.committed(p) {
			w.Error("offset still exists after seven days")
		}
	})
}

func TestBadRequests(t *testing.T) {
	inBubble(t, func(w *harness) {
		for _, c := range []struct {
			name   string
			change func(*groups.JoinRequest)
			want   error
		}{
			{"short session", func(r *groups.JoinRequest) { r.SessionTimeout = time.Second }, groups.ErrSessionTimeout},
			{"long session", func(r *groups.JoinRequest) { r.SessionTimeout = time.Hour }, groups.ErrSessionTimeout},
			{
				"long instance id", func(r *groups.JoinRequest) { r.InstanceID = strings.Repeat("x", 250) },
				groups.ErrTooLarge,
			},
			{"no protocol", func(r *groups.JoinRequest) { r.Protocols = nil }, groups.ErrProtocol},
			{"no type", func(r *groups.JoinRequest) { r.Type = "" }, groups.ErrProtocol},
			{
				"much metadata", func(r *groups.JoinRequest) { r.Protocols[0].Metadata = make([]byte, 300<<10) },
				groups.ErrTooLarge,
			},
		} {
			req := request("")
			c.change(req)
			if _, err := w.Join(w.Context(), w.key, req); !errors.Is(err, c.want) {
				w.Errorf("%s: error %v, want %v", c.name, err, c.want)
			}
		}
		_, err := w.Join(w.Context(), groups.Key{Tenant: "public"}, request(""))
		w.wantError(err, groups.ErrGroupID)
		if all := w.List("public"); len(all) != 0 {
			w.Errorf("rejected requests left groups %v, want none", all)
		}
	})
}

func TestList(t *testing.T) {
	inBubble(t, func(w *harness) {
		for i := range 40 {
			key := groups.Key{Tenant: []string{"a", "b"}[i%2], Group: fmt.Sprintf("g%02d", i)}
			p := map[groups.Partition]groups.Offset{{Topic: 1}: {}}
			w.wantError(w.Commit(w.Context(), key, &groups.CommitRequest{Generation: -1, Offsets: p}), nil)
		}
		all := w.List("b")
		if len(all) != 20 || all[0].Key.Group != "g01" || all[19].Key.Group != "g39" {
			w.Errorf("groups of b are %v, want the 20 odd ones in order", all)
		}
	})
}

// committed reports whether the group has committed an offset of a partition.
func (w *harness) committed(at groups.Partition) bool {
	w.Helper()
	committed, err := w.Committed(w.key)
	w.wantError(err, nil)
	_, ok := committed.Offset(at)
	return ok
}
