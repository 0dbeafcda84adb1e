package pebble

import (
	"sync"
	"time"
)

// tableRetry slows flushes and compactions down that fail again and again, as they
// do on a full disk: Pebble tries them anew at once, without end. The pause is
// taken where a table is made, since nothing is locked there.
type tableRetry struct {
	s *store

	mu       sync.Mutex // guards what follows; a leaf
	failures int
	since    time.Time
}

// The pause after a failure doubles with each.
const (
	firstTablePause = 50 * time.Millisecond
	lastTablePause  = 30 * time.Second
)

// failed notes that a flush or compaction could not be done. Only the first of a
// row is logged.
func (r *tableRetry) failed(err error) {
	r.mu.Lock()
	r.failures++
	first := r.failures == 1
	if first {
		r.since = time.Now()
	}
	r.mu.Unlock()
	if first {
		r.s.log.Error("store: a flush or compaction failed; it is tried again, less and less often, and this is not "+
			"logged again until one works", "dir", r.s.dir, "error", err)
	}
	_ = r.s.damagedStore(storeError(err)) // a compaction that reads damage makes the store unhealthy
}

// worked notes that one was done.
func (r *tableRetry) worked() {
	r.mu.Lock()
	failures, since := r.failures, r.since
	r.failures = 0
	r.mu.Unlock()
	if failures > 0 {
		r.s.log.Info("store: flushes and compactions work again", "dir", r.s.dir, "failures", failures, "after",
			time.Since(since).Round(time.Millisecond))
	}
}

// pause waits as long as the failures so far ask for, unless the store closes.
func (r *tableRetry) pause() {
	r.mu.Lock()
	failures := r.failures
	r.mu.Unlock()
	if failures == 0 {
		return
	}
	timer := time.NewTimer(min(firstTablePause<<min(failures-1, 16), lastTablePause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.s.ending:
	case <-r.s.failed:
	}
}
