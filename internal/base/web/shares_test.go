package web_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/web"
	"freshet/test/tally"
)

func TestSharesLeaveSomethingForOthers(t *testing.T) {
	t.Parallel()
	take := func(s *web.Shares, organization, principal string) (n int) {
		for ; n < 1000; n++ {
			if _, ok := s.Acquire(t.Context(), web.Caller{Organization: organization, Principal: principal}, 1,
				0); !ok {
				break
			}
		}
		return n
	}
	s := web.NewShares(160)
	for _, c := range []struct {
		organization, principal string
		want                    int
	}{
		{"a", "1", 90}, // three quarters of the three quarters of an organization
		{"a", "2", 22}, // of the 30 that are left to it
		{"b", "1", 27}, // of the 36 of 48
		{"c", "1", 11}, // of the 15 of 21
		{"a", "1", 0},  // it has had its share
		{"d", "1", 5},
	} {
		if got := take(s, c.organization, c.principal); got != c.want {
			t.Errorf("%s/%s takes %d, want %d", c.organization, c.principal, got, c.want)
		}
	}
}

// TestAttackSharesWithManyCalls: however many calls one principal or organization
// makes at the same time, one of somebody else waits for no more calls than there
// are organizations before it.
func TestAttackSharesWithManyCalls(t *testing.T) {
	t.Parallel()
	const slots, callers, victims = 10, 500, 20
	attempts, late := 0, 0
	for _, attackers := range []int{1, 2, 5, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := web.NewShares(slots)
			ctx, stop := context.WithCancel(t.Context())
			var served atomic.Int64
			var calls sync.WaitGroup
			hold := oneByOne(time.Second / slots)
			for i := range callers {
				who := web.Caller{Organization: fmt.Sprint(i % attackers), Principal: "p"}
				calls.Go(func() {
					for ctx.Err() == nil {
						if _, ok := s.Acquire(ctx, who, 1, time.Hour); !ok {
							return
						}
						served.Add(1)
						hold()
						s.Release(who, 1)
					}
				})
			}
			for v := range victims {
				synctest.Wait() // until every call that was served is counted
				before := served.Load()
				who := web.Caller{Organization: "victim", Principal: fmt.Sprint(v % 3)}
				if _, ok := s.Acquire(ctx, who, 1, time.Hour); !ok {
					t.Error("the victim was not served")
				}
				attempts++
				if n := served.Load() - before; n > int64(attackers) {
					late++
					t.Errorf("%d attackers: %d calls were served before the victim's, want at most one of each",
						attackers, n)
				}
				<-time.After(time.Second / 3)
				s.Release(who, 1)
			}
			stop()
			calls.Wait()
		})
	}
	tally.Attack(t, "500 concurrent calls against one", attempts, late)
}

// oneByOne returns a function that waits, on synctest's clock, until an instant that
// no other call of it waits for. A test that releases one thing at a time can count
// exactly what was served before a given call.
func oneByOne(step time.Duration) func() {
	var mu sync.Mutex
	var last time.Time // the instant that was handed out last; mu protects it
	return func() {
		mu.Lock()
		if now := time.Now(); now.After(last) {
			last = now
		}
		last = last.Add(step)
		wait := time.Until(last)
		mu.Unlock()
		<-time.After(wait)
	}
}

func TestSharesGiveUpWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := web.NewShares(4)
		a, b := web.Caller{Organization: "a"}, web.Caller{Organization: "b"}
		if n, ok := s.Acquire(t.Context(), a, 9, 0); !ok || n != 4 {
			t.Fatalf("all there is: got %d, %v, want 4, true", n, ok)
		}
		if _, ok := s.Acquire(t.Context(), b, 1, time.Second); ok {
			t.Error("got something although nothing was free")
		}
		s.Release(a, 4)
		if n, ok := s.Acquire(t.Context(), b, 4, 0); !ok || n != 4 {
			t.Errorf("after everything was given back: got %d, %v, want 4, true", n, ok)
		}
	})
}
