package tokenapi

import "freshet/internal/surfaces/throttle"

// Rate is the rate of a token bucket.
type Rate = throttle.Rate

// Limits are the rate limits of token requests.
type Limits struct {
	Client     Rate // tokens per client id
	Address    Rate // requests per address of the caller; IPv6 by /64
	Failures   Rate // wrong secrets per client id and address
	Guesses    Rate // wrong secrets per client id, from addresses that never got a token for it
	Device     Rate // device authorizations per address
	Devices    Rate // device authorizations from all addresses together
	MaxTracked int  // maximum number of clients and of addresses to track; the least recently used is evicted
}

// complete sets the defaults. A client needs one token per audience and day, so even a
// fleet that restarts at the same time under one client id stays below the limit. One
// address can be a load balancer in front of all clients, so its limit is the rate at
// which one core can sign.
func (l *Limits) complete() {
	l.Client.Complete(Rate{PerSecond: 10, Burst: 100})
	l.Address.Complete(Rate{PerSecond: 2000, Burst: 10_000})
	l.Failures.Complete(Rate{PerSecond: 0.5, Burst: 20})
	l.Guesses.Complete(Rate{PerSecond: 10, Burst: 1000})
	l.Device.Complete(Rate{PerSecond: 0.2, Burst: 20})
	l.Devices.Complete(Rate{PerSecond: 5, Burst: 200})
	if l.MaxTracked <= 0 {
		l.MaxTracked = 20_000
	}
}
