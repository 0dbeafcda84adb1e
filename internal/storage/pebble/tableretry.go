package pebble

import (
	"log/slog"
	"sync"
	"time"
)

// tableRetry adds exponential backoff to flushes and compactions that fail repeatedly, for
// example on a full disk: Pebble retries them immediately and forever. The backoff happens
// where a table is created, because Pebble holds no lock there.
type tableRetry struct {
	s *store

	mu       sync.Mutex // protects the fields below; a leaf
	failures int
	since    time.Time
}

// The backoff after a failure doubles with each further failure.
const (
	minTableBackoff = 50 * time.Millisecond
	maxTableBackoff = 30 * time.Second
)

// failed counts a failed flush or compaction. It logs only the first of consecutive
// failures.
func (r *tableRetry) failed(err error) {
	r.mu.Lock()
	r.failures++
	first := r.failures == 1
	if first {
		r.since = time.Now()
	}
	r.mu.Unlock()
	if first {
		r.s.log.Error("store: flush or compaction failed; retrying with backoff, further failures are not logged "+
			"until one succeeds", slog.String("dir", r.s.dir), slog.Any("error", err))
	}
	_ = r.s.recordStoreDamage(storeError(err)) // damage that a compaction reads makes the store unhealthy
}

// succeeded resets the failures after a successful flush or compaction.
func (r *tableRetry) succeeded() {
	r.mu.Lock()
	failures, since := r.failures, r.since
	r.failures = 0
	r.mu.Unlock()
	if failures > 0 {
		r.s.log.Info("store: flushes and compactions work again", slog.String("dir", r.s.dir),
			slog.Int("failures", failures), slog.Duration("after", time.Since(since).Round(time.Millisecond)))
	}
}

// backOff waits for the backoff, or until the store closes or fails.
func (r *tableRetry) backOff() {
	r.mu.Lock()
	failures := r.failures
	r.mu.Unlock()
	if failures == 0 {
		return
	}
	timer := time.NewTimer(min(minTableBackoff<<min(failures-1, 16), maxTableBackoff))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.s.ending:
	case <-r.s.failed:
	}
}
