package tokenapi

import (
	"context"
	"time"

	"freshet/internal/surfaces/throttle"
)

// Rate is the rate of a token bucket.
type Rate = throttle.Rate

// Limits are the rate limits of token requests.
type Limits struct {
	Client     Rate // tokens per client id
	Issued     Rate // tokens per organization
	Address    Rate // failed requests per address of the caller; IPv6 by /64
	Failures   Rate // wrong secrets per client id and address
	Guesses    Rate // wrong secrets per client id
	Device     Rate // device authorizations per address
	Devices    Rate // device authorizations from all addresses together
	MaxTracked int  // maximum number of clients and of addresses to track; the least recently used is evicted
}

// complete sets the defaults. A client needs one token per audience and day, so even a
// fleet that restarts at the same time under one client id stays below the limit. One
// address can be a load balancer in front of all clients. So the limit of an organization is the
// rate at which one core can sign, and the limits of an address count failures only.
func (l *Limits) complete() {
	l.Client.Complete(Rate{PerSecond: 10, Burst: 100})
	l.Issued.Complete(Rate{PerSecond: 2000, Burst: 10_000})
	l.Address.Complete(Rate{PerSecond: 2000, Burst: 10_000})
	l.Failures.Complete(Rate{PerSecond: 0.5, Burst: 20})
	l.Guesses.Complete(Rate{PerSecond: 10, Burst: 1000})
	l.Device.Complete(Rate{PerSecond: 0.2, Burst: 20})
	l.Devices.Complete(Rate{PerSecond: 5, Burst: 200})
	if l.MaxTracked <= 0 {
		l.MaxTracked = 20_000
	}
}

// What the limits count, for error texts.
const (
	tokensOf        = "tokens"
	requestsOf      = "failed requests"
	wrongSecretsOf  = "wrong secrets"
	deviceSignInsOf = "device sign-ins"
)

// The scopes of the limits that are not those of a throttle.Guard.
const (
	perClient       throttle.Scope = "for this client; reuse tokens until they expire"
	perOrganization throttle.Scope = "for this organization; reuse tokens until they expire"
	perServer       throttle.Scope = "at this server"
)

// Requests from an address that has too many failures are still checked, because the address may
// be a proxy in front of other clients. But only a few of them at a time: each reads the store.
const (
	slowChecks  = 4
	slowTimeout = 2 * time.Second
)

// enterAddress admits a request with a secret whose check reads the store. The caller must call
// leave. Only requests of addresses with too many failures wait.
func (a *API) enterAddress(ctx context.Context, address string) (leave func(), err error) {
	over := a.guard.PeekAddress(address)
	if over.None() {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	select {
	case a.slow <- struct{}{}:
		return func() { <-a.slow }, nil
	case <-ctx.Done():
		return nil, throttled(requestsOf, over)
	}
}

// failAddress counts a failed request of an address. It returns err, or the error of the limit.
func (a *API) failAddress(address string, err error) error {
	if over := a.guard.TakeAddress(address); !over.None() {
		return throttled(requestsOf, over)
	}
	return err
}
