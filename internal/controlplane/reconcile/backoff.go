package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Backoff delays the retries of work that reports its failures in the status. A write of the status
// queues the object again, so the queue's own backoff has no effect. The zero value is ready to
// use.
type Backoff struct {
	mu       sync.Mutex // protects attempts
	attempts map[types.UID]attempt
}

type attempt struct {
	generation int64
	failures   int
	due        time.Time
}

const (
	firstDelay = 250 * time.Millisecond
	lastDelay  = 30 * time.Second
)

// Remaining returns the time until the next attempt is due; a new generation is due immediately.
func (b *Backoff) Remaining(uid types.UID, generation int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.attempts[uid]
	if !ok || a.generation != generation {
		return 0
	}
	return max(0, time.Until(a.due))
}

// Failed records a failure. It returns the number of consecutive failures and the delay until the
// next attempt.
func (b *Backoff) Failed(uid types.UID, generation int64) (failures int, delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.attempts[uid]
	if a.generation != generation {
		a = attempt{generation: generation}
	}
	a.failures++
	delay = lastDelay
	if shift := a.failures - 1; shift < 10 {
		delay = min(lastDelay, firstDelay<<shift)
	}
	a.due = time.Now().Add(delay)
	if b.attempts == nil {
		b.attempts = make(map[types.UID]attempt)
	}
	b.attempts[uid] = a
	return a.failures, delay
}

// Forget resets the count.
func (b *Backoff) Forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.attempts, uid)
}
