// Package throttle has a rate limiter with a token bucket per key, for a bounded number of
// keys, and a Guard that protects the secrets of accounts with three of them. tokenapi and
// signinapi use both. It limits callers that are not authenticated; quota limits
// organizations. The package has no locks of its own: lru.Cache and rate.Limiter are safe for concurrent use.
package throttle

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"freshet/internal/base/lru"
)

// Rate is the rate of a token bucket: Burst events at one time, then PerSecond. The
// zero value selects the default; a negative PerSecond means no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Complete sets a zero Rate to the default, and a missing Burst to 1.
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

// New returns a limiter for at most maxKeys keys. It evicts the least recently used key.
func New(r Rate, maxKeys int) *Limiter {
	return &Limiter{rate: r, buckets: lru.New[string, *rate.Limiter](int64(maxKeys))}
}

// Take takes a token and returns 0, or returns how long the caller must wait for one.
func (l *Limiter) Take(key string) time.Duration {
	if l.rate.PerSecond < 0 {
		return 0
	}
	now := time.Now()
	reservation := l.bucket(key).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now) // a rejected request does not delay the next one
	}
	return wait
}

// Peek returns how long the caller must wait for a token, and takes none.
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

// AddressKey returns the key of a remote address: an IPv4 address, or the /64 prefix of
// an IPv6 address, because one host can have all addresses of a /64.
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
