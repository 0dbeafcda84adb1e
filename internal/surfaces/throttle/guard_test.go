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
func admitted(attempt func(i int) throttle.Exceeded) int {
	n := 0
	for i := range 20 {
		if attempt(i).None() {
			n++
		}
	}
	return n
}

func TestGuardTakesBeforeTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.NewGuard(rates(), 100)
		for range 3 {
			if e := g.Take("a", "home"); !e.None() {
				t.Errorf("one account, one address: got %v, want three attempts", e)
			}
		}
		if e := g.Take("a", "home"); e.Scope != throttle.PerAccountByAddress || e.Wait != 2*time.Second {
			t.Errorf("got %v, want the limit of the account and address, and two seconds", e)
		}
		if n := admitted(func(i int) throttle.Exceeded { return g.Take(fmt.Sprint(i), "hall") }); n != 10 {
			t.Errorf("many accounts, one address: got %d attempts, want 10", n)
		}
		if e := g.Take("x", "hall"); e.Scope != throttle.PerAddress {
			t.Errorf("got %v, want the limit of the address", e)
		}
		if n := admitted(func(i int) throttle.Exceeded { return g.Take("b", fmt.Sprint(i)) }); n != 6 {
			t.Errorf("one account, many addresses: got %d attempts, want 6", n)
		}
		if e := g.Take("b", "cafe"); e.Scope != throttle.PerAccount {
			t.Errorf("unknown address of an attacked account: got %v, want the limit of the account", e)
		}
		time.Sleep(2 * time.Second) // synctest's fake clock
		if e := g.Take("a", "home"); !e.None() {
			t.Errorf("2s later: got %v, want none", e)
		}
	})
}

func TestGuardAdmitsKnownAddresses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.NewGuard(rates(), 100)
		admitted(func(i int) throttle.Exceeded { return g.Take("b", fmt.Sprint(i)) })      // account at its limit
		admitted(func(i int) throttle.Exceeded { return g.Take(fmt.Sprint(i), "office") }) // address at its limit
		if n := admitted(func(int) throttle.Exceeded { return g.TakeKnown("b", "office") }); n != 3 {
			t.Errorf("known account: got %d attempts, want 3", n)
		}
		if n := admitted(func(i int) throttle.Exceeded { return g.TakeKnown(fmt.Sprint(i, "k"), "hall") }); n != 10 {
			t.Errorf("many known accounts, one address: got %d attempts, want 10", n)
		}
	})
}

func TestGuardCountsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := throttle.NewGuard(rates(), 100)
		if n := admitted(func(int) throttle.Exceeded { return g.Fail("a", "home") }); n != 3 {
			t.Errorf("one account, one address: got %d failures, want 3", n)
		}
		if n := admitted(func(i int) throttle.Exceeded { return g.Fail("b", fmt.Sprint(i)) }); n != 6 {
			t.Errorf("one account, many addresses: got %d failures, want 6", n)
		}
		if n := admitted(func(i int) throttle.Exceeded { return g.Fail(fmt.Sprint(i), "hall") }); n != 10 {
			t.Errorf("many accounts, one address: got %d failures, want 10", n)
		}
	})
}

func TestGuardLimitsAddresses(t *testing.T) {
	t.Parallel()
	g := throttle.NewGuard(rates(), 100)
	if e := g.PeekAddress("home"); !e.None() {
		t.Errorf("before the first request: got %v, want none", e)
	}
	if n := admitted(func(int) throttle.Exceeded { return g.TakeAddress("home") }); n != 10 {
		t.Errorf("got %d requests, want 10", n)
	}
	if e := g.PeekAddress("home"); e.None() {
		t.Error("after the last request: got none, want the limit of the address")
	}
	if e := g.TakeAddress("office"); !e.None() {
		t.Errorf("other address: got %v, want none", e)
	}
}
