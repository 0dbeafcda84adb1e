package pebble

import (
	"sync/atomic"

	"freshet/internal/storage/engine"
)

// totals are sums over all topics. Every change of a topic updates them. A topic is counted
// while it is loaded, and after that while its usage is remembered (unloadedUsage).
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
	e.startUsage()
	return engine.Totals{Stored: e.totals.stored.Load(), Subscriptions: e.totals.subscriptions.Load()}
}

// storeLocked adds to the stored bytes of the topic. The caller holds committer.mu.
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

// addToTotals adds a topic that was just loaded to the totals, in place of its remembered usage.
// No other goroutine uses the topic yet.
func (t *topic) addToTotals() {
	var stored int64
	var subs int
	if t.err == nil {
		stored, subs = t.stored, len(t.subs)
	}
	t.e.totals.add(stored-t.countedUsage.Stored, subs-t.countedUsage.Subscriptions)
	t.countedUsage = engine.Usage{}
}
