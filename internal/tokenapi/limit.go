package tokenapi

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"freshet/internal/lru"
)

// Rate is how often something may happen: Burst times at once, then PerSecond.
// The zero value is the default, a negative PerSecond is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Limits bound token requests.
type Limits struct {
	Client     Rate // tokens per client id
	Address    Rate // per address of the caller; IPv6 by /64
	Failures   Rate // wrong secrets per client id and address
	Guesses    Rate // wrong secrets per client id, from addresses that have had no token of it
	Remembered int  // clients and addresses remembered at most, each; the least recent is forgotten
}

// The defaults. A client needs a token per audience and day, so even a fleet
// that restarts at once under one client id passes. One address may be that of a
// load balancer with every client there is behind it; its limit is what one core
// can sign.
func (l *Limits) complete() {
	l.Client.complete(Rate{PerSecond: 10, Burst: 100})
	l.Address.complete(Rate{PerSecond: 2000, Burst: 10_000})
	l.Failures.complete(Rate{PerSecond: 0.5, Burst: 20})
	l.Guesses.complete(Rate{PerSecond: 10, Burst: 1000})
	if l.Remembered <= 0 {
		l.Remembered = 20_000
	}
}

func (r *Rate) complete(to Rate) {
	if r.PerSecond == 0 {
		*r = to
	}
	if r.Burst <= 0 {
		r.Burst = 1
	}
}

// limiter has a token bucket per key, for a bounded number of keys.
type limiter struct {
	rate    Rate
	buckets *lru.Cache[string, *rate.Limiter]
}

func newLimiter(r Rate, maxKeys int) *limiter {
	return &limiter{rate: r, buckets: lru.New[string, *rate.Limiter](int64(maxKeys))}
}

// take uses up one, or says how long to wait for it.
func (l *limiter) take(key string) time.Duration {
	if l.rate.PerSecond < 0 {
		return 0
	}
	now := time.Now()
	reservation := l.bucket(key).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now) // a refused request does not push the next one back
	}
	return wait
}

// peek says how long to wait, and uses nothing up.
func (l *limiter) peek(key string) time.Duration {
	if l.rate.PerSecond < 0 {
		return 0
	}
	missing := 1 - l.bucket(key).TokensAt(time.Now())
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / l.rate.PerSecond * float64(time.Second))
}

func (l *limiter) bucket(key string) *rate.Limiter {
	if bucket, ok := l.buckets.Get(key); ok {
		return bucket
	}
	return l.buckets.Add(key, rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst), 1)
}

// addressKey names the network a caller comes from: an IPv4 address, or the /64
// of an IPv6 one, of which a single host has them all.
func addressKey(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if address = address.Unmap(); address.Is6() {
		if prefix, err := address.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}
