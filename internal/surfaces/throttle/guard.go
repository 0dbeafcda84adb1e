package throttle

import (
	"fmt"
	"time"
)

// Guard slows down the guessing of secrets, whether or not the guessed account exists. It has
// three limits: per address, per account and address, and per account over all addresses.
//
// A surface whose checks are expensive counts every attempt before it is made (Take). Attempts at
// addresses that are known for their account count separately (TakeKnown), so that an attacker
// at other addresses cannot lock the owner out, and neither can callers at the same address that
// guess at other accounts. A surface whose checks are cheap counts failed attempts only (Fail):
// the right secret always passes.
type Guard struct {
	addresses *Limiter
	attempts  *Limiter // per account and address
	guesses   *Limiter // per account
	known     *Limiter // per address, for accounts that are known there
}

// GuardRates are the rates of a guard's limits.
type GuardRates struct {
	Address          Rate
	AccountByAddress Rate
	Account          Rate
}

// NewGuard returns a guard that tracks at most maxKeys keys per limit.
func NewGuard(rates GuardRates, maxKeys int) *Guard {
	return &Guard{
		addresses: New(rates.Address, maxKeys),
		attempts:  New(rates.AccountByAddress, maxKeys),
		guesses:   New(rates.Account, maxKeys),
		known:     New(rates.Address, maxKeys),
	}
}

// Scope is what a limit counts together.
type Scope string

// The scopes of a guard's limits.
const (
	PerAddress          Scope = "from this address"
	PerAccountByAddress Scope = "for this account from this address"
	PerAccount          Scope = "for this account from new addresses"
)

// Exceeded is a limit that an attempt exceeds. The zero value is none.
type Exceeded struct {
	Scope Scope
	Wait  time.Duration // until the next attempt may succeed
}

// None reports whether no limit was exceeded.
func (e Exceeded) None() bool { return e.Wait <= 0 }

// TryAgain returns when to try again, in words.
func TryAgain(wait time.Duration) string {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	if seconds == 1 {
		return "try again in a second"
	}
	return fmt.Sprintf("try again in %d seconds", seconds)
}

// TakeAddress counts an attempt of an address.
func (g *Guard) TakeAddress(address string) Exceeded {
	return Exceeded{PerAddress, g.addresses.Take(address)}
}

// PeekAddress returns whether an address has made too many attempts. It counts nothing.
func (g *Guard) PeekAddress(address string) Exceeded {
	return Exceeded{PerAddress, g.addresses.Peek(address)}
}

// Take counts an attempt before it is made, by all three limits.
func (g *Guard) Take(account, address string) Exceeded {
	if e := g.TakeAddress(address); !e.None() {
		return e
	}
	if wait := g.attempts.Take(pairKey(account, address)); wait > 0 {
		return Exceeded{PerAccountByAddress, wait}
	}
	return Exceeded{PerAccount, g.guesses.Take(account)}
}

// TakeKnown counts an attempt at an address that is known for the account, before it is made.
func (g *Guard) TakeKnown(account, address string) Exceeded {
	if wait := g.attempts.Take(pairKey(account, address)); wait > 0 {
		return Exceeded{PerAccountByAddress, wait}
	}
	return Exceeded{PerAddress, g.known.Take(address)}
}

// Fail counts a failed attempt by all three limits, and returns the one with the longest wait.
func (g *Guard) Fail(account, address string) Exceeded {
	worst := g.TakeAddress(address)
	for _, e := range []Exceeded{
		{PerAccountByAddress, g.attempts.Take(pairKey(account, address))},
		{PerAccount, g.guesses.Take(account)},
	} {
		if e.Wait > worst.Wait {
			worst = e
		}
	}
	return worst
}

func pairKey(account, address string) string { return account + "\x00" + address }
