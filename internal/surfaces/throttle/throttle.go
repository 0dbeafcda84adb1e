// Package throttle limits how often somebody may do something, for a bounded number
// of those who do.
package throttle

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"freshet/internal/base/lru"
)

// Rate is how often something may happen: Burst times at once, then PerSecond.
// The zero value is the default, a negative PerSecond is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Complete puts a default where nothing was given.
func (r *Rate) Complete(to Rate) {
	if r.PerSecond == 0 {
		*r = to
	}
	if r.Burst <= 0 {
		r.Burst = 1
	}
}

// Limiter has a token bucket per key, for a bounded number of keys.
type Limiter struct {
	rate    Rate
	buckets *lru.Cache[string, *rate.Limiter]
}

// New makes a limiter that remembers so many keys; the least recent is forgotten.
func New(r Rate, maxKeys int) *Limiter {
	return &Limiter{rate: r, buckets: lru.New[string, *rate.Limiter](int64(maxKeys))}
}

// Take uses up one, or says how long to wait for it.
func (l *Limiter) Take(key string) time.Duration {
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

// Peek says how long to wait, and uses nothing up.
func (l *Limiter) Peek(key string) time.Duration {
	if l.rate.PerSecond < 0 {
		return 0
	}
	missing := 1 - l.bucket(key).TokensAt(time.Now())
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / l.rate.PerSecond * float64(time.Second))
}

func (l *Limiter) bucket(key string) *rate.Limiter {
	if bucket, ok := l.buckets.Get(key); ok {
		return bucket
	}
	return l.buckets.Add(key, rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst), 1)
}

// AddressKey names the network a caller comes from: an IPv4 address, or the /64
// of an IPv6 one, of which a single host has them all.
func AddressKey(remote string) string {
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
