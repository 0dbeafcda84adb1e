package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Backoff spaces the retries of work that shows its failures in status. Writing
// the status wakes the object again, so the queue's own back-off would not hold.
// The zero value is ready to use.
type Backoff struct {
	mu       sync.Mutex
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

// Wait is how long the next try has to wait; a new generation does not.
func (b *Backoff) Wait(uid types.UID, generation int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.attempts[uid]
	if !ok || a.generation != generation {
		return 0
	}
	return max(0, time.Until(a.due))
}

// Failed notes a failure: how many there were in a row, and when to try again.
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

// Forget ends the count.
func (b *Backoff) Forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.attempts, uid)
}
