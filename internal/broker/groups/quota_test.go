package groups_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/broker/groups"
	"freshet/internal/ops/quota"
	"freshet/test/tally"
)

const accountShare = 4 << 20

// inLimitedBubble is inBubble with quotas.
func inLimitedBubble(t *testing.T, test func(w *harness, limits *quota.Cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBubbleHarness(t)
		limits := quota.New(quota.Limits{
			quota.AccountStateBytes: accountShare, quota.TenantStateBytes: 4 * accountShare,
		}, nil).Organization("acme").Open("prod", quota.Limits{})
		w.reopen(limits)
		test(w, limits)
		if err := errors.Join(w.Coordinator.Close(), w.engine.Close()); err != nil {
			t.Error(err)
		}
		if n := limits.Used(quota.ClientStateBytes); n != 0 {
			t.Errorf("%d bytes are counted after the coordinator has closed, want 0", n)
		}
	})
}

// reopen closes the coordinator and opens it again with quotas.
func (w *harness) reopen(limits *quota.Cluster) {
	w.Helper()
	err := w.Coordinator.Close()
	if err == nil {
		w.Coordinator, err = groups.Open(w.Context(), w.engine, groups.Options{Quota: limits})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// joinAs joins a group as an account and returns an error, or nil if the member waits or has joined.
func (w *harness) joinAs(account, group, instance string, metadata int) error {
	req := request("")
	req.InstanceID, req.Caller.Principal, req.Protocols[0].Metadata = instance, account, make([]byte, metadata)
	done := make(chan error, 1)
	go func() {
		_, err := w.Join(w.Context(), groups.Key{Tenant: "public", Group: group}, req)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Millisecond):
		return nil
	}
}

// TestAttackMetadataOfMembers joins many groups with large metadata as one account. It gets the share of an
// account, another account of the tenant joins, and sessions that end give the bytes back.
func TestAttackMetadataOfMembers(t *testing.T) {
	inLimitedBubble(t, func(w *harness, limits *quota.Cluster) {
		const attempts = 100
		taken := 0
		for i := range attempts {
			switch err := w.joinAs("acme/mallory", fmt.Sprint("g", i), "i", 250<<10); {
			case err == nil:
				taken++
			case !errors.Is(err, groups.ErrGroupFull) || !errors.Is(err, quota.ErrExhausted):
				w.Fatalf("group %d: got %v, want %v and %v", i, err, groups.ErrGroupFull, quota.ErrExhausted)
			}
		}
		over := 0
		account := limits.Used(quota.AccountStateBytes)
		if account > accountShare || taken == 0 {
			over = attempts
			w.Errorf("account has %d bytes in %d groups, want at most %d", account, taken, accountShare)
		}
		tally.Attack(w.T, "groups: metadata of members of one account", attempts, over)
		if err := w.joinAs("acme/alice", "mine", "i", 250<<10); err != nil {
			w.Errorf("other account: got %v, want it to join", err)
		}
		time.Sleep(time.Hour) // the members send no heartbeat
		synctest.Wait()
		if account := limits.Used(quota.AccountStateBytes); account > accountShare/4 {
			w.Errorf("account has %d bytes after its sessions have ended, want only its stored groups", account)
		}
		if err := w.joinAs("acme/mallory", "again", "i", 250<<10); err != nil {
			w.Errorf("after the sessions have ended: got %v, want it to join", err)
		}
	})
}

// TestAttackPendingMembers requests member ids and never joins with them.
func TestAttackPendingMembers(t *testing.T) {
	inLimitedBubble(t, func(w *harness, limits *quota.Cluster) {
		attempts, full := 0, false
		for i := 0; i < 200 && !full; i++ {
			for range 200 {
				req := request("")
				req.Caller.Principal, req.RequireMemberID = "acme/mallory", true
				attempts++
				_, err := w.Join(w.Context(), groups.Key{Tenant: "public", Group: fmt.Sprint("g", i)}, req)
				if full = errors.Is(err, groups.ErrGroupFull); full {
					break
				}
				w.wantError(err, groups.ErrMemberIDRequired)
			}
		}
		account := limits.Used(quota.AccountStateBytes)
		over := 0
		if !full || account > accountShare {
			over = attempts
		}
		tally.Attack(w.T, "groups: member ids that nobody uses", attempts, over)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := limits.Used(quota.ClientStateBytes); n != 0 {
			w.Errorf("%d bytes are counted after the ids have expired, want 0", n)
		}
	})
}

// TestAttackAssignments sends assignments above the share of the leader's account.
func TestAttackAssignments(t *testing.T) {
	inLimitedBubble(t, func(w *harness, limits *quota.Cluster) {
		all := make([]<-chan outcome, 20)
		for i := range all {
			req := request("")
			req.Caller.Principal = "acme/mallory"
			all[i] = w.join(req)
		}
		results := w.joined(all...)
		assignments := make(map[string][]byte)
		for _, r := range results {
			assignments[r.MemberID] = make([]byte, 250<<10)
		}
		over := 0
		for _, r := range results {
			if r.MemberID != r.Leader {
				continue
			}
			_, err := w.Sync(w.Context(), w.key, &groups.SyncRequest{
				MemberID: r.MemberID, Generation: r.Generation, Assignments: assignments,
			})
			if errs.KindOf(err) != errs.Precondition || !errors.Is(err, quota.ErrExhausted) {
				over++
				w.Errorf("got %v, want %v", err, quota.ErrExhausted)
			}
		}
		tally.Attack(w.T, "groups: assignments above the share of an account", 1, over)
	})
}

// TestMembersCountTheSameAfterRestart checks that members of both protocols count for their accounts after a
// restart.
func TestMembersCountTheSameAfterRestart(t *testing.T) {
	inLimitedBubble(t, func(w *harness, limits *quota.Cluster) {
		req := request("")
		req.Caller.Principal = "acme/alice"
		w.sync(w.joined(w.join(req))...)
		ts := newTopics(map[string]int32{"x": 3})
		key := w.key
		w.key.Group = "consumers"
		c := w.consumer(ts, "m", "x")
		heartbeat := c.full()
		heartbeat.Caller.Principal = "acme/bob"
		_, err := w.ConsumerHeartbeat(w.Context(), w.key, heartbeat)
		w.wantError(err, nil)
		w.key = key
		count := func() [3]int64 {
			return [3]int64{
				limits.Used(quota.AccountStateBytes), limits.Used(quota.TenantStateBytes),
				limits.Used(quota.ClientStateBytes),
			}
		}
		before := count()
		if before[0] == 0 || before[0] >= before[2] || before[1] != before[2] {
			w.Errorf("got %v bytes, want those of two accounts", before)
		}
		w.reopen(limits)
		if after := count(); after != before {
			w.Errorf("got %v bytes after a restart, want %v", after, before)
		}
	})
}

// TestOwnerPaysForEarlierMember checks that the first caller who uses a member without an owner, as an older version
// has stored it, pays for it from then on, and pays nothing when it has left.
func TestOwnerPaysForEarlierMember(t *testing.T) {
	inLimitedBubble(t, func(w *harness, limits *quota.Cluster) {
		joined := w.joined(w.join(request("")))
		w.sync(joined...)
		if n := limits.Used(quota.AccountStateBytes); n != 0 {
			w.Errorf("%d bytes are counted for an account, want 0 for a member without an owner", n)
		}
		alice := groups.Caller{Principal: "acme/alice"}
		w.wantError(w.Heartbeat(w.key, alice, joined[0].MemberID, "", joined[0].Generation), nil)
		if n := limits.Used(quota.AccountStateBytes); n == 0 {
			w.Error("the account of the new owner pays nothing")
		}
		_, err := w.Leave(w.key, alice, []groups.LeavingMember{{MemberID: joined[0].MemberID}})
		w.wantError(err, nil)
		w.wantError(w.Delete(w.Context(), w.key, nil), nil)
		if n := limits.Used(quota.ClientStateBytes); n != 0 {
			w.Errorf("%d bytes are counted after the member has left, want 0", n)
		}
	})
}

// TestProducerIDsOfOlderVersions checks that an id which an older version has issued, without an account, is known,
// and that new ids have an account.
func TestProducerIDsOfOlderVersions(t *testing.T) {
	inBubble(t, func(w *harness) {
		if err := w.Coordinator.Close(); err != nil {
			w.Fatal(err)
		}
		journal, err := w.engine.Journal(w.Context(), "producers")
		w.wantError(err, nil)
		_, err = journal.Append(w.Context(), 0, binary.BigEndian.AppendUint64(nil, 1001))
		w.wantError(err, nil)
		w.open()
		id, err := w.ProducerID(w.Context(), "acme/alice")
		w.wantError(err, nil)
		other, err := w.ProducerID(w.Context(), "acme/bob")
		w.wantError(err, nil)
		w.restart()
		for _, c := range []struct {
			id     int64
			owner  string
			issued bool
		}{
			{-1, "", false},
			{0, "", false},
			{1, "", true},
			{1000, "", true},
			{id, "acme/alice", true},
			{other, "acme/bob", true},
			{other + 1000, "", false},
			{1 << 62, "", false},
		} {
			owner, issued, err := w.ProducerOwner(w.Context(), c.id)
			if owner != c.owner || issued != c.issued || err != nil {
				w.Errorf("id %d: got %q, %v, %v; want %q, %v", c.id, owner, issued, err, c.owner, c.issued)
			}
		}
		if next, err := w.ProducerID(w.Context(), "acme/alice"); next <= other || err != nil {
			w.Errorf("got id %d, %v after a restart; want one above %d", next, err, other)
		}
	})
}
