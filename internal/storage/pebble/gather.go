package pebble

import "time"

// In an external log a commit batch costs many times as much as a message in it: the
// members send it to each other, write it and sync it, whatever its size. So batches
// linger to become larger. A batch waits while another one is in flight, unless it is
// large already. When the batch in flight is acknowledged, its writers continue, and most
// of them write again: so the next batch waits for as many writers, for a fraction of the
// log's latency. A single writer never waits.
const (
	// loggedInFlight limits the batches that an external log has not acknowledged;
	// the second one is sent only when it has largeGroup bytes.
	loggedInFlight = 2
	largeGroup     = 256 << 10
	// A batch waits for writers at most for the log's latency divided by lingerPart,
	// and at most for maxLinger.
	lingerPart = 2
	maxLinger  = 10 * time.Millisecond
	// tookWeight is the weight of the moving average of the log's latency, in batches.
	tookWeight = 8
)

// gatherer is the committer's state for lingering. applyLoop receives from joined;
// everything else is protected by committer.mu.
type gatherer struct {
	crowd  int           // writers of the last completed batch and of the current one
	want   int           // writers that applyLoop waits for; 0 while it does not wait
	took   time.Duration // moving average of the log's latency
	most   time.Duration // maximum wait for writers: maxLinger
	joined chan struct{} // capacity 1; signals that the awaited writers have joined
}

// gather waits until the current batch is large enough for the log. applyLoop calls it.
func (c *committer) gather() {
	c.mu.Lock()
	for c.err == nil && len(c.inFlight) > 0 && c.cur.bytes < largeGroup {
		c.synced.Wait()
	}
	if c.err != nil || len(c.inFlight) > 0 || c.cur.gatheredFor(c.crowd) {
		c.mu.Unlock()
		return
	}
	c.want = c.crowd
	timer := time.NewTimer(min(c.took/lingerPart, c.most))
	defer timer.Stop()
	c.mu.Unlock()
	select {
	case <-c.joined:
	case <-timer.C:
	case <-c.stop:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = 0
	select {
	case <-c.joined: // signalled meanwhile
	default:
	}
}

// gatheredFor reports whether the batch has a number of writers, or is large enough
// without them.
func (g *group) gatheredFor(writers int) bool { return g.writers >= writers || g.bytes >= largeGroup }

// joinLocked counts a writer of the current batch, and wakes applyLoop when the batch has
// the writers that applyLoop waits for. The caller holds committer.mu.
func (c *committer) joinLocked() {
	c.cur.writers++
	if c.want > 0 && c.cur.gatheredFor(c.want) {
		select {
		case c.joined <- struct{}{}:
		default: // signalled already
		}
	}
	if c.cur.bytes >= largeGroup {
		c.synced.Signal()
	}
}

// learnLocked updates the expected writers and the log's latency after a batch has
// completed. The caller holds committer.mu.
func (c *committer) learnLocked(g *group) {
	c.crowd = g.writers + c.cur.writers
	if g.place != nil {
		c.took += (time.Since(g.offered) - c.took) / tookWeight
	}
}
