package fairshare_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/fairshare"
	"freshet/test/tally"
)

func TestSemaphoreReservesUnitsForOthers(t *testing.T) {
	t.Parallel()
	take := func(s *fairshare.Semaphore, organization, principal string) (n int) {
		for ; n < 1000; n++ {
			caller := fairshare.Caller{Organization: organization, Principal: principal}
			if _, err := s.Acquire(t.Context(), caller, 1, 0); err != nil {
				break
			}
		}
		return n
	}
	s := fairshare.New(160, fairshare.Options{})
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

func TestSemaphoreDividesByConnection(t *testing.T) {
	t.Parallel()
	s := fairshare.New(640, fairshare.Options{})
	take := func(principal string, connection uint64) (n int) {
		caller := fairshare.Caller{Organization: "a", Principal: principal, Connection: connection}
		for ; n < 1000; n++ {
			if _, err := s.Acquire(t.Context(), caller, 1, 0); err != nil {
				break
			}
		}
		return n
	}
	if got := s.SoloShare(); got != 270 {
		t.Errorf("share of the only connection: got %d, want 270", got)
	}
	for _, c := range []struct {
		principal  string
		connection uint64
		want       int
	}{
		{"1", 1, 270}, // 3/4 of the principal's 360
		{"1", 2, 67},  // 3/4 of the 90 that remain for the principal
		{"1", 1, 0},
	} {
		if got := take(c.principal, c.connection); got != c.want {
			t.Errorf("connection %d of %s: acquired %d, want %d", c.connection, c.principal, got, c.want)
		}
	}
	caller := fairshare.Caller{Organization: "a", Principal: "1", Connection: 1}
	if _, err := s.Extend(t.Context(), caller, 20, 0); err != nil {
		t.Errorf("extending within the principal's share: got %v, want 20 units", err)
	}
	if _, err := s.Extend(t.Context(), caller, 20, 0); !errors.Is(err, fairshare.ErrTimeout) {
		t.Errorf("extending beyond the principal's share: got %v, want %v", err, fairshare.ErrTimeout)
	}
	if got := take("2", 3); got != 69 { // 3/4 of the principal's 92, which are 3/4 of the organization's 123
		t.Errorf("another principal: acquired %d, want 69", got)
	}
}

// TestSemaphoreServesExtendFirst checks that units which become free complete what a principal has begun, although
// other connections of the principal hold less.
func TestSemaphoreServesExtendFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fairshare.New(160, fairshare.Options{})
		caller := func(connection uint64) fairshare.Caller {
			return fairshare.Caller{Organization: "a", Principal: "p", Connection: connection}
		}
		for connection, n := range map[uint64]int64{1: 60, 2: 30} {
			if _, err := s.Acquire(t.Context(), caller(connection), n, 0); err != nil {
				t.Fatal(err)
			}
		}
		order := make(chan string, 2)
		go func() {
			_, _ = s.Acquire(t.Context(), caller(3), 10, fairshare.NoTimeout)
			order <- "acquire"
		}()
		synctest.Wait()
		go func() {
			_, _ = s.Extend(t.Context(), caller(1), 30, fairshare.NoTimeout)
			order <- "extend"
		}()
		synctest.Wait()
		s.Release(caller(2), 15)
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%s was served with too few units for the extension, want none", <-order)
		}
		s.Release(caller(2), 15)
		if got := <-order; got != "extend" {
			t.Errorf("first served: got %s, want extend", got)
		}
		s.Release(caller(1), 90)
		if got := <-order; got != "acquire" {
			t.Errorf("then served: got %s, want acquire", got)
		}
	})
}

// TestSemaphoreMaxHeld checks the limit of one organization, beyond its first acquisition.
func TestSemaphoreMaxHeld(t *testing.T) {
	t.Parallel()
	s := fairshare.New(100, fairshare.Options{MaxHeld: 10})
	for org, want := range map[string][2]bool{"a": {true, false}, "b": {true, false}} {
		for i, n := range []int64{8, 3} {
			_, err := s.Acquire(t.Context(), fairshare.Caller{Organization: org}, n, 0)
			if (err == nil) != want[i] {
				t.Errorf("acquisition %d of %s: got %v, want success %t", i, org, err, want[i])
			}
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
			s := fairshare.New(units, fairshare.Options{})
			ctx, stop := context.WithCancel(t.Context())
			var served atomic.Int64
			var calls sync.WaitGroup
			hold := oneByOne(time.Second / units)
			for i := range callers {
				caller := fairshare.Caller{Organization: fmt.Sprint(i % attackers), Principal: "p"}
				calls.Go(func() {
					for ctx.Err() == nil {
						if _, err := s.Acquire(ctx, caller, 1, time.Hour); err != nil {
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
				caller := fairshare.Caller{Organization: "victim", Principal: fmt.Sprint(v % 3)}
				if _, err := s.Acquire(ctx, caller, 1, time.Hour); err != nil {
					t.Errorf("call of the victim was not served: %v", err)
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
		s := fairshare.New(4, fairshare.Options{})
		a, b := fairshare.Caller{Organization: "a"}, fairshare.Caller{Organization: "b"}
		if n, err := s.Acquire(t.Context(), a, 9, 0); err != nil || n != 4 {
			t.Fatalf("acquiring more than all units: got %d, %v, want 4", n, err)
		}
		for _, timeout := range []time.Duration{0, time.Second} {
			start := time.Now()
			_, err := s.Acquire(t.Context(), b, 1, timeout)
			if !errors.Is(err, fairshare.ErrTimeout) || time.Since(start) != timeout {
				t.Errorf("no unit is free: got %v after %s, want %v after %s", err, time.Since(start),
					fairshare.ErrTimeout, timeout)
			}
		}
		s.Release(a, 4)
		if n, err := s.Acquire(t.Context(), b, 4, 0); err != nil || n != 4 {
			t.Errorf("after all units were released: got %d, %v, want 4", n, err)
		}
	})
}

func TestSemaphoreAcquireEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fairshare.New(1, fairshare.Options{MaxWaiting: 2})
		a, b := fairshare.Caller{Organization: "a"}, fairshare.Caller{Organization: "b"}
		if _, err := s.Acquire(t.Context(), a, 1, 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		for range 2 {
			go func() {
				_, err := s.Acquire(ctx, b, 1, fairshare.NoTimeout)
				ended <- err
			}()
		}
		synctest.Wait()
		if _, err := s.Acquire(ctx, b, 1, fairshare.NoTimeout); !errors.Is(err, fairshare.ErrQueueFull) {
			t.Errorf("third waiting call: got %v, want %v", err, fairshare.ErrQueueFull)
		}
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting call: got %v, want %v", err, context.Canceled)
			}
		}
		s.Release(a, 1)
		// Another caller gets all units only if none is held.
		other := fairshare.Caller{Organization: "other", Principal: "other"}
		if n, err := s.Acquire(t.Context(), other, s.Capacity(), 0); err != nil || n != s.Capacity() {
			t.Errorf("all units after the last release: got %d, %v, want %d", n, err, s.Capacity())
		}
	})
}

func TestSemaphoreWithoutReserve(t *testing.T) {
	t.Parallel()
	s := fairshare.New(8, fairshare.Options{NoReserve: true})
	a := fairshare.Caller{Organization: "a"}
	for i := range 8 {
		if _, err := s.Acquire(t.Context(), a, 1, 0); err != nil {
			t.Fatalf("unit %d of 8: %v", i+1, err)
		}
	}
	if _, err := s.Acquire(t.Context(), a, 1, 0); !errors.Is(err, fairshare.ErrTimeout) {
		t.Errorf("ninth unit of 8: got %v, want %v", err, fairshare.ErrTimeout)
	}
}

func BenchmarkAcquire(b *testing.B) {
	b.Run("free", func(b *testing.B) {
		s := fairshare.New(100, fairshare.Options{})
		caller := fairshare.Caller{Organization: "a", Principal: "p"}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Acquire(b.Context(), caller, 1, 0)
			s.Release(caller, 1)
		}
	})
	b.Run("rejected", func(b *testing.B) {
		s := fairshare.New(100, fairshare.Options{})
		caller := fairshare.Caller{Organization: "a", Principal: "p"}
		_, _ = s.Acquire(b.Context(), caller, 100, 0)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Acquire(b.Context(), caller, 1, 0)
		}
	})
	b.Run("contended", func(b *testing.B) {
		s := fairshare.New(1, fairshare.Options{})
		var callers atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			caller := fairshare.Caller{Organization: fmt.Sprint(callers.Add(1))}
			for pb.Next() {
				_, _ = s.Acquire(b.Context(), caller, 1, time.Hour)
				s.Release(caller, 1)
			}
		})
	})
}
