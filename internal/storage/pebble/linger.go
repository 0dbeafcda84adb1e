package pebble

import "time"

// In an external log a commit batch costs many times as much as a message in it: the
// members send it to each other, write it and sync it, whatever its size. So batches
// linger to become larger. A batch waits while another one is in flight, unless it is
// large already. When the batch in flight is acknowledged, its writers continue, and most
// of them write again: so the next batch waits for as many writers, for a fraction of the
// log's latency. A single writer never waits.
const (
	// maxLoggedInFlight limits the batches that an external log has not acknowledged;
	// the second one is sent only when it has largeBatchBytes bytes.
	maxLoggedInFlight = 2
	largeBatchBytes   = 256 << 10
	// maxLoggedBatchBytes is maxBatchBytes for an external log. Larger batches are not cheaper for a
	// log, but the members hold about ten copies of a batch in flight, and its callers wait for all
	// of it.
	maxLoggedBatchBytes = 2 << 20
	// A batch waits for writers at most for the log's latency divided by lingerDivisor,
	// and at most for maxLinger.
	lingerDivisor = 2
	maxLinger     = 10 * time.Millisecond
	// latencyWeight is the weight of the moving average of the log's latency, in batches.
	latencyWeight = 8
)

// lingerState is the committer's state for lingering. applyLoop receives from joined;
// everything else is protected by committer.mu.
type lingerState struct {
	expectedWriters int           // writers of the last completed batch and of the current one
	awaitedWriters  int           // writers that applyLoop waits for; 0 while it does not wait
	logLatency      time.Duration // moving average of the log's latency
	lingerLimit     time.Duration // maximum wait for writers: maxLinger
	joined          chan struct{} // capacity 1; signals that the awaited writers have joined
}

// linger waits until the current batch is large enough for the log. applyLoop calls it.
func (c *committer) linger() {
	c.mu.Lock()
	for c.err == nil && len(c.inFlight) > 0 && (c.cur.bytes < largeBatchBytes || c.log.Crowded()) {
		c.synced.Wait() // at the latest until the batch in flight is acknowledged
	}
	if c.err != nil || len(c.inFlight) > 0 || c.cur.readyFor(c.expectedWriters) {
		c.mu.Unlock()
		return
	}
	c.awaitedWriters = c.expectedWriters
	timer := time.NewTimer(min(c.logLatency/lingerDivisor, c.lingerLimit))
	defer timer.Stop()
	c.mu.Unlock()
	select {
	case <-c.joined:
	case <-timer.C:
	case <-c.stop:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitedWriters = 0
	select {
	case <-c.joined: // signalled meanwhile
	default:
	}
}

// readyFor reports whether the batch has a number of writers, or is large enough
// without them.
func (g *commitBatch) readyFor(writers int) bool {
	return g.writers >= writers || g.bytes >= largeBatchBytes
}

// joinLocked counts a writer of the current batch, and wakes applyLoop when the batch has
// the writers that applyLoop waits for. The caller holds committer.mu.
func (c *committer) joinLocked() {
	c.cur.writers++
	if c.awaitedWriters > 0 && c.cur.readyFor(c.awaitedWriters) {
		select {
		case c.joined <- struct{}{}:
		default: // signalled already
		}
	}
	if c.cur.bytes >= largeBatchBytes {
		c.synced.Signal()
	}
}

// observeLocked updates the expected writers and the log's latency after a batch has
// completed. The caller holds committer.mu.
func (c *committer) observeLocked(g *commitBatch) {
	c.expectedWriters = g.writers + c.cur.writers
	if g.logAppend != nil {
		c.logLatency += (time.Since(g.offeredAt) - c.logLatency) / latencyWeight
	}
}
