package throttle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/surfaces/throttle"
)

// rates admit 10 attempts per address, 3 per account and address, and 6 per account.
func rates() throttle.GuardRates {
	return throttle.GuardRates{
		Address:          throttle.Rate{PerSecond: 1, Burst: 10},
		AccountByAddress: throttle.Rate{PerSecond: 0.5, Burst: 3},
		Account:          throttle.Rate{PerSecond: 0.5, Burst: 6},
	}
}

// admitted returns how many of 20 attempts are admitted.
func admitted(attempt func(i int) time.Duration) int {
	n := 0
	for i := range 20 {
		if attempt(i) == 0 {
			n++
		}
	}
	return n
}

func TestGuardTakesBeforeTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.NewGuard(rates(), 100)
		if n := admitted(func(int) time.Duration { return g.Take("a", "home") }); n != 3 {
			t.Errorf("one account, one address: got %d attempts, want 3", n)
		}
		if n := admitted(func(i int) time.Duration { return g.Take(fmt.Sprint(i), "hall") }); n != 10 {
			t.Errorf("many accounts, one address: got %d attempts, want 10", n)
		}
		if n := admitted(func(i int) time.Duration { return g.Take("b", fmt.Sprint(i)) }); n != 6 {
			t.Errorf("one account, many addresses: got %d attempts, want 6", n)
		}
		g.Succeed("b", "office")
		if wait := g.Take("b", "office"); wait != 0 {
			t.Errorf("known address of an attacked account: got a wait of %v, want none", wait)
		}
		if wait := g.Take("b", "cafe"); wait == 0 {
			t.Error("unknown address of an attacked account: got no wait")
		}
		time.Sleep(2 * time.Second)
		if wait := g.Take("a", "home"); wait != 0 {
			t.Errorf("2s later: got a wait of %v, want none", wait)
		}
	})
}

func TestGuardCountsFailuresOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.NewGuard(rates(), 100)
		if n := admitted(func(int) time.Duration { return g.Peek("a", "home") }); n != 20 {
			t.Errorf("without failures: got %d attempts, want 20", n)
		}
		failing := func(account, address string) time.Duration {
			wait := g.Peek(account, address)
			if wait == 0 {
				g.Fail(account, address)
			}
			return wait
		}
		if n := admitted(func(int) time.Duration { return failing("a", "home") }); n != 3 {
			t.Errorf("one account, one address: got %d failures, want 3", n)
		}
		if n := admitted(func(i int) time.Duration { return failing("b", fmt.Sprint(i)) }); n != 6 {
			t.Errorf("one account, many addresses: got %d failures, want 6", n)
		}
		g.Succeed("b", "office")
		if wait := g.Peek("b", "office"); wait != 0 {
			t.Errorf("known address of an attacked account: got a wait of %v, want none", wait)
		}
		if wait := g.Peek("b", "cafe"); wait == 0 {
			t.Error("unknown address of an attacked account: got no wait")
		}
	})
}

func TestGuardLimitsAddresses(t *testing.T) {
	t.Parallel()
	g := throttle.NewGuard(rates(), 100)
	if n := admitted(func(int) time.Duration { return g.TakeAddress("home") }); n != 10 {
		t.Errorf("got %d requests, want 10", n)
	}
	if wait := g.TakeAddress("office"); wait != 0 {
		t.Errorf("other address: got a wait of %v, want none", wait)
	}
}
