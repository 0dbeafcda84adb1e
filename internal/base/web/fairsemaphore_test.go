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

func TestSemaphoreReservesUnitsForOthers(t *testing.T) {
	t.Parallel()
	take := func(s *web.FairSemaphore, organization, principal string) (n int) {
		for ; n < 1000; n++ {
			if _, ok := s.Acquire(t.Context(), web.Caller{Organization: organization, Principal: principal}, 1,
				0); !ok {
				break
			}
		}
		return n
	}
	s := web.NewFairSemaphore(160)
	for _, c := range []struct {
		organization, principal string
		want                    int
	}{
		{"a", "1", 90}, // 3/4 of the organization's 120, which are 3/4 of 160
		{"a", "2", 22}, // 3/4 of the 30 that remain for the organization
		{"b", "1", 27}, // 3/4 of the organization's 36, which are 3/4 of 48
		{"c", "1", 11}, // 3/4 of the organization's 15, which are 3/4 of 21
		{"a", "1", 0},  // it already holds its share
		{"d", "1", 5},
	} {
		if got := take(s, c.organization, c.principal); got != c.want {
			t.Errorf("%s/%s: acquired %d, want %d", c.organization, c.principal, got, c.want)
		}
	}
}

// TestAttackSemaphoreWithManyCalls: however many concurrent calls other organizations make,
// a call of another organization waits for at most one call of each of them.
func TestAttackSemaphoreWithManyCalls(t *testing.T) {
	t.Parallel()
	const units, callers, victims = 10, 500, 20
	attempts, late := 0, 0
	for _, attackers := range []int{1, 2, 5, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := web.NewFairSemaphore(units)
			ctx, stop := context.WithCancel(t.Context())
			var served atomic.Int64
			var calls sync.WaitGroup
			hold := oneByOne(time.Second / units)
			for i := range callers {
				caller := web.Caller{Organization: fmt.Sprint(i % attackers), Principal: "p"}
				calls.Go(func() {
					for ctx.Err() == nil {
						if _, ok := s.Acquire(ctx, caller, 1, time.Hour); !ok {
							return
						}
						served.Add(1)
						hold()
						s.Release(caller, 1)
					}
				})
			}
			for v := range victims {
				synctest.Wait() // until every served call is counted
				before := served.Load()
				caller := web.Caller{Organization: "victim", Principal: fmt.Sprint(v % 3)}
				if _, ok := s.Acquire(ctx, caller, 1, time.Hour); !ok {
					t.Error("call of the victim was not served")
				}
				attempts++
				if n := served.Load() - before; n > int64(attackers) {
					late++
					t.Errorf("%d attackers: %d calls were served before the victim's, want at most one of each",
						attackers, n)
				}
				<-time.After(time.Second / 3)
				s.Release(caller, 1)
			}
			stop()
			calls.Wait()
		})
	}
	tally.Attack(t, "500 concurrent calls against one", attempts, late)
}

// oneByOne returns a function that waits, on synctest's clock, until an instant that no
// other call of it waits for. So a test releases one unit at a time and can count exactly
// which calls were served before a given call.
func oneByOne(step time.Duration) func() {
	var mu sync.Mutex  // protects last
	var last time.Time // the latest instant that was assigned
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

func TestSemaphoreAcquireTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := web.NewFairSemaphore(4)
		a, b := web.Caller{Organization: "a"}, web.Caller{Organization: "b"}
		if n, ok := s.Acquire(t.Context(), a, 9, 0); !ok || n != 4 {
			t.Fatalf("acquiring more than all units: got %d, %v, want 4, true", n, ok)
		}
		if _, ok := s.Acquire(t.Context(), b, 1, time.Second); ok {
			t.Error("acquired a unit although none was free")
		}
		s.Release(a, 4)
		if n, ok := s.Acquire(t.Context(), b, 4, 0); !ok || n != 4 {
			t.Errorf("after all units were released: got %d, %v, want 4, true", n, ok)
		}
	})
}
