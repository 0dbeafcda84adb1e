// Package retry waits: for a time, for a signal, between the runs of periodic work, and between the
// attempts of an operation. A wait ends with its context and releases its timer at once, also inside a loop.
//
// It does not log and does not decide which errors are worth another attempt: its callers do.
// Package lograte, next door, limits the lines about a failure that is retried.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d. It returns the cause of the context if that ends first, also if it has ended
// already.
func Sleep(ctx context.Context, d time.Duration) error { return Wait(ctx, nil, d) }

// Wait waits until the signal is sent or closed, but at most for d. It returns the cause of the
// context if that ends first, also if it has ended already.
func Wait(ctx context.Context, signal <-chan struct{}, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-signal:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Every returns a loop that runs its body at each interval until the context ends. The first run
// is one interval after the start. The time that the body takes counts, and a body that takes longer
// than the interval misses runs:
//
//	for range retry.Every(ctx, time.Minute) {
//		removeExpired()
//	}
func Every(ctx context.Context, interval time.Duration) func(body func() bool) {
	return func(body func() bool) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
			if ctx.Err() != nil || !body() {
				return
			}
		}
	}
}

// Backoff is the time between attempts: Min after the first, then twice as long each time, up to
// Max. A Backoff without Max is constant.
type Backoff struct {
	Min, Max time.Duration
	// Jitter is the largest part of the time, between 0 and 1, that is subtracted at random, so that
	// many callers that failed at the same moment do not try again at the same moment.
	Jitter float64

	next time.Duration
}

// Next returns how long to wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	d := max(b.next, b.Min)
	b.next = min(2*d, max(b.Max, b.Min))
	if b.Jitter > 0 {
		d -= time.Duration(rand.Float64() * b.Jitter * float64(d)) //nolint:gosec // not a secret
	}
	return d
}

// Reset begins again with Min, after a success.
func (b *Backoff) Reset() { b.next = 0 }

// Sleep waits before the next attempt, like the function Sleep.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Do calls attempt until it returns false, and waits in between. It returns the error of the last
// attempt, also if the context ends; attempt is called at least once.
func Do(ctx context.Context, b Backoff, attempt func() (again bool, err error)) error {
	for {
		again, err := attempt()
		if !again || b.Sleep(ctx) != nil {
			return err
		}
	}
}
