package throttle

import (
	"time"

	"freshet/internal/base/lru"
)

// Guard slows down the guessing of secrets, whether or not the guessed account exists. It has
// three limits: per address, per account and address, and per account over all addresses.
// The last limit does not apply to an address that has presented the right secret of the
// account before, so that an attacker at other addresses cannot lock the owner out.
//
// A surface counts every attempt before it is made (Take), or only failed attempts (Peek,
// then Fail).
type Guard struct {
	addresses *Limiter
	attempts  *Limiter // per account and address
	guesses   *Limiter // per account
	known     *lru.Cache[string, struct{}]
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
		known:     lru.New[string, struct{}](int64(maxKeys)),
	}
}

// TakeAddress counts a request of an address. It returns 0, or how long the caller must wait.
func (g *Guard) TakeAddress(address string) time.Duration { return g.addresses.Take(address) }

// Take counts an attempt before it is made, by all three limits. It returns 0, or how long the
// caller must wait.
func (g *Guard) Take(account, address string) time.Duration {
	if wait := g.addresses.Take(address); wait > 0 {
		return wait
	}
	key := pairKey(account, address)
	if wait := g.attempts.Take(key); wait > 0 {
		return wait
	}
	if g.knows(key) {
		return 0
	}
	return g.guesses.Take(account)
}

// Peek returns how long the caller must wait for an attempt because of earlier failures, or 0.
// It counts nothing.
func (g *Guard) Peek(account, address string) time.Duration {
	key := pairKey(account, address)
	if wait := g.attempts.Peek(key); wait > 0 || g.knows(key) {
		return wait
	}
	return g.guesses.Peek(account)
}

// Fail counts a failed attempt.
func (g *Guard) Fail(account, address string) {
	g.attempts.Take(pairKey(account, address))
	g.guesses.Take(account)
}

// Succeed remembers that the address has presented the right secret of the account.
func (g *Guard) Succeed(account, address string) {
	g.known.Add(pairKey(account, address), struct{}{}, 1)
}

func (g *Guard) knows(key string) bool {
	_, ok := g.known.Get(key)
	return ok
}

func pairKey(account, address string) string { return account + "\x00" + address }
