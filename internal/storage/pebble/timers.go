package pebble

import (
	"container/heap"
	"sync"
	"time"

	"freshet/internal/base/wire"
)

// instant is a time on the engine's monotonic clock: nanoseconds since the engine was
// opened. Leases use it, so that a jump of the wall clock neither ends nor extends them.
type instant int64

// instant converts a result of time.Now.
func (e *Engine) instant(now time.Time) instant {
	return instant(now.Sub(e.opened)) + 1 // never 0
}

// clock wakes subscriptions when a lease or delay ends: one goroutine and one heap for all
// of them. mu protects subs, and armed and index of the subscriptions.
type clock struct {
	e      *Engine
	mu     sync.Mutex
	subs   wakeHeap
	wakeup chan struct{}
	stop   chan struct{}
	ended  chan struct{}
}

func (c *clock) start(e *Engine) {
	c.e = e
	c.wakeup = make(chan struct{}, 1)
	c.stop = make(chan struct{})
	c.ended = make(chan struct{})
	go c.run()
}

func (c *clock) close() {
	close(c.stop)
	<-c.ended
}

// armLocked makes sure that the subscription is woken for its first timer. It may be woken
// early, when that timer was removed since. The caller holds s.mu.
func (s *subscription) armLocked() {
	if len(s.timers) == 0 {
		return
	}
	c, at := &s.engine().clock, int64(s.timers[0].at)
	if armed := s.armed.Load(); armed != 0 && armed <= at {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if armed := s.armed.Load(); armed != 0 && armed <= at {
		return
	}
	s.armed.Store(at)
	if s.index < 0 {
		heap.Push(&c.subs, s)
	} else {
		heap.Fix(&c.subs, s.index)
	}
	if s.index == 0 {
		select {
		case c.wakeup <- struct{}{}:
		default:
		}
	}
}

func (c *clock) disarm(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.armed.Store(0)
	if s.index >= 0 {
		heap.Remove(&c.subs, s.index)
	}
}

func (c *clock) run() {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var due []*subscription
	for {
		now := time.Now()
		at := int64(c.e.instant(now))
		due = due[:0]
		sleep := time.Hour
		c.mu.Lock()
		for len(c.subs) > 0 {
			if first := c.subs[0].armed.Load(); first > at {
				sleep = time.Duration(first - at)
				break
			}
			s := heap.Pop(&c.subs).(*subscription)
			s.armed.Store(0)
			due = append(due, s)
		}
		c.mu.Unlock()
		for _, s := range due {
			s.mu.Lock()
			s.dispatchLocked(now)
			s.mu.Unlock()
		}
		if len(due) > 0 {
			continue
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-c.wakeup:
		case <-c.stop:
			return
		}
	}
}

type wakeHeap []*subscription

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].armed.Load() < h[j].armed.Load() }
func (h wakeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *wakeHeap) Push(x any) {
	s := x.(*subscription)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *wakeHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.index = -1
	return s
}

// expireLocked ends the leases and delays that are due. The caller holds s.mu.
func (s *subscription) expireLocked(now instant) {
	for len(s.timers) > 0 && s.timers[0].at <= now {
		it := s.timers[0]
		wasLeased := it.state == itemLeased
		s.dropLocked(it)
		if wasLeased {
			it.expired = true
			s.returnedLocked(nil, it, now, 0)
		} else {
			s.makeReadyLocked(it)
		}
	}
}

// returnedLocked returns a detached item to the queue, or moves it to the dead letter
// topic, after a consumer did not acknowledge it. The caller holds s.mu and, if g is not
// nil, committer.mu.
func (s *subscription) returnedLocked(g *commitBatch, it *item, now instant, delay time.Duration) {
	if s.config.MaxDeliveries > 0 && it.deliveries >= s.config.MaxDeliveries {
		it.state = itemDeadLetter
		s.deadLetters++
		s.engine().deadLetters.enqueue(it)
		return
	}
	s.saveDeliveriesLocked(g, it)
	if delay > 0 {
		s.suspendLocked(it, now+instant(delay))
	} else {
		s.makeReadyLocked(it)
	}
}

// saveDeliveriesLocked stores how often the item was delivered, so that the count survives
// a restart. No caller waits for the write, because a crash loses only a count and not a
// message. The caller holds s.mu and, if g is not nil, committer.mu.
func (s *subscription) saveDeliveriesLocked(g *commitBatch, it *item) {
	if g == nil {
		var err error
		if g, err = s.engine().commit.lockBatch(); err != nil {
			return
		}
		defer s.engine().commit.unlockAndCommit()
	}
	c := it.cur
	if c.counts == nil {
		c.counts = make(map[uint64]uint32)
	}
	c.counts[it.entry] = it.deliveries
	var body wire.Writer
	body.Uvarint(uint64(it.deliveries))
	g.setLocked(cursorEntryKey(ofCount, s.topic.id, s.id, c.part.index, it.entry), body)
	g.pinLocked(s.topic)
}
