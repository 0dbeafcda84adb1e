package groups_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/internal/broker/groups"
	"freshet/test/tally"
)

// TestAttackMemoryOfMembers checks that the metadata of members is bounded per group and for all
// groups together, for any number of members.
func TestAttackMemoryOfMembers(t *testing.T) {
	inBubble(t, func(w *harness) {
		attempts, taken := 0, 0
		for g := range 12 {
			inGroup := 0
			for i := range 200 {
				req := request("")
				req.InstanceID, req.Protocols[0].Metadata = fmt.Sprint("i", i), make([]byte, 255<<10)
				key := groups.Key{Tenant: "public", Group: fmt.Sprint("g", g)}
				done := make(chan error, 1)
				go func() {
					_, err := w.Join(w.Context(), key, req)
					done <- err
				}()
				attempts++
				select {
				case err := <-done:
					if !errors.Is(err, groups.ErrGroupFull) {
						w.Fatalf("group %d, member %d: got %v, want %v", g, i, err, groups.ErrGroupFull)
					}
				case <-time.After(time.Millisecond): // the member waits for the others
					inGroup++
				}
			}
			if inGroup > 128 {
				w.Errorf("group %d: got %d members with 255 KiB each, want at most 128", g, inGroup)
			}
			taken += inGroup
		}
		over := 0
		if taken > 1028 {
			over = taken - 1028
			w.Errorf("got %d members with 255 KiB each in all groups, want at most 1,028", taken)
		}
		if taken < 1000 {
			w.Errorf("got %d members with 255 KiB each, want at least 1,000", taken)
		}
		tally.Attack(t, "groups: members with much metadata", attempts, over)
	})
}

// TestMemoryOfMembersIsReleased checks that the memory of members that rejoin or leave is
// released.
func TestMemoryOfMembersIsReleased(t *testing.T) {
	inBubble(t, func(w *harness) {
		for i := range 300 {
			req := request("")
			req.Protocols[0].Metadata = make([]byte, 200<<10)
			result := w.joined(w.join(req))[0]
			req.MemberID, req.Protocols[0].Metadata = result.MemberID, make([]byte, 255<<10)
			again := w.joined(w.join(req))[0]
			left, err := w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{{MemberID: again.MemberID}})
			if err != nil || left[0] != nil {
				w.Fatalf("member %d: got %v, %v; want it to leave", i, left, err)
			}
		}
		ts := newTopics(map[string]int32{"x": 3})
		for i := range 300 {
			names := []string{"x"}
			for j := range 100 {
				names = append(names, fmt.Sprint(strings.Repeat("n", 2000), j))
			}
			c := w.consumer(ts, fmt.Sprint("c", i), names...)
			c.join()
			w.wantError(c.leave(-1), nil)
		}
	})
}
