package pebble

import (
	"sync/atomic"

	"freshet/internal/storage/engine"
)

// totals are what all topics have together, kept up to date by whoever changes a
// topic. A topic is counted while it is loaded, and after that as long as its
// usage is remembered (unloadedUsage).
type totals struct{ stored, subscriptions atomic.Int64 }

func (n *totals) add(stored int64, subscriptions int) {
	if stored != 0 {
		n.stored.Add(stored)
	}
	if subscriptions != 0 {
		n.subscriptions.Add(int64(subscriptions))
	}
}

// Totals implements engine.Statistics.
func (e *Engine) Totals() engine.Totals {
	e.watchUsage()
	return engine.Totals{Stored: e.totals.stored.Load(), Subscriptions: e.totals.subscriptions.Load()}
}

// storeLocked notes that the topic stores so much more. The caller holds
// committer.mu.
func (t *topic) storeLocked(more int64) {
	t.stored += more
	t.e.totals.stored.Add(more)
}

// storedNow returns the bytes that the topic stores.
func (t *topic) storedNow() int64 {
	t.e.commit.mu.Lock()
	defer t.e.commit.mu.Unlock()
	return t.stored
}

// count brings a topic that was just loaded into the totals, in place of what
// they had of it. Nobody else sees the topic yet.
func (t *topic) count() {
	var stored int64
	var subs int
	if t.err == nil {
		stored, subs = t.stored, len(t.subs)
	}
	t.e.totals.add(stored-t.counted.Stored, subs-t.counted.Subscriptions)
	t.counted = engine.Usage{}
}
