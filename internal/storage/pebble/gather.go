package pebble

import "time"

// A group costs a log outside of the store many times what a message in it does: the
// members of the log send it to each other, write and sync it, whatever is in it. So
// groups are made large where there is something to gather. A group waits while another
// is on its way, unless it is large by itself. When that one is back, so are those who
// wrote in it, most of them to write again: the next group waits for as many writers as
// there were, for a part of the time that the log takes. A writer that is alone waits
// for nobody.
const (
	// loggedInFlight bounds the groups that a log outside of the store has not
	// acknowledged; the second goes only when it has largeGroup bytes.
	loggedInFlight = 2
	largeGroup     = 256 << 10
	// lingerPart of the time that the log takes is what a group waits at most for
	// writers, and no more than maxLinger.
	lingerPart = 2
	maxLinger  = 10 * time.Millisecond
	// tookWeight is how many groups the average of that time is about.
	tookWeight = 8
)

// gatherer is what a committer knows about its writers. joined is for applyLoop to
// receive from, everything else is guarded by committer.mu.
type gatherer struct {
	crowd  int           // those who wrote in the last group, and who waited for the next
	want   int           // writers that applyLoop waits for; 0 while it does not
	took   time.Duration // what a group takes in the log, about
	most   time.Duration // to wait for writers: maxLinger
	joined chan struct{} // has room for one; the group has the writers that are waited for
}

// gather waits until the current group is worth its way to the log. applyLoop calls it.
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
	case <-c.joined: // meanwhile
	default:
	}
}

// gatheredFor says whether the group need not wait for a number of writers.
func (g *group) gatheredFor(writers int) bool { return g.writers >= writers || g.bytes >= largeGroup }

// joinLocked counts a writer of the current group, and lets applyLoop go on when it was
// the last that it waits for.
func (c *committer) joinLocked() {
	c.cur.writers++
	if c.want > 0 && c.cur.gatheredFor(c.want) {
		select {
		case c.joined <- struct{}{}:
		default: // it was told
		}
	}
	if c.cur.bytes >= largeGroup {
		c.synced.Signal()
	}
}

// learnLocked notes what can be learned of a group that the log has.
func (c *committer) learnLocked(g *group) {
	c.crowd = g.writers + c.cur.writers
	if g.place != nil {
		c.took += (time.Since(g.offered) - c.took) / tookWeight
	}
}
