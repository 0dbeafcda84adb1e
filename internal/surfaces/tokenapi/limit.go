package tokenapi

import "freshet/internal/surfaces/throttle"

// Rate is how often something may happen.
type Rate = throttle.Rate

// Limits bound token requests.
type Limits struct {
	Client     Rate // tokens per client id
	Address    Rate // per address of the caller; IPv6 by /64
	Failures   Rate // wrong secrets per client id and address
	Guesses    Rate // wrong secrets per client id, from addresses that have had no token of it
	Device     Rate // devices that begin to wait, per address
	Devices    Rate // and from everywhere
	Remembered int  // clients and addresses remembered at most, each; the least recent is forgotten
}

// The defaults. A client needs a token per audience and day, so even a fleet
// that restarts at once under one client id passes. One address may be that of a
// load balancer with every client there is behind it; its limit is what one core
// can sign.
func (l *Limits) complete() {
	l.Client.Complete(Rate{PerSecond: 10, Burst: 100})
	l.Address.Complete(Rate{PerSecond: 2000, Burst: 10_000})
	l.Failures.Complete(Rate{PerSecond: 0.5, Burst: 20})
	l.Guesses.Complete(Rate{PerSecond: 10, Burst: 1000})
	l.Device.Complete(Rate{PerSecond: 0.2, Burst: 20})
	l.Devices.Complete(Rate{PerSecond: 5, Burst: 200})
	if l.Remembered <= 0 {
		l.Remembered = 20_000
	}
}
