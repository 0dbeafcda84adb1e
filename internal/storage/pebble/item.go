package pebble

import "sync/atomic"

// item is an entry that was considered for delivery and is not acknowledged: leased,
// delayed, or ready to be delivered again. Protected by subscription.mu, except for size.
type item struct {
	cur        *cursor
	entry      uint64
	at         instant // when the lease expires or the delay ends
	deliveries uint32
	state      itemState
	expired    bool         // a lease has expired, and its consumer may still send settlements
	index      int          // in the heap of its state
	size       atomic.Int64 // stored bytes, once the record was read
}

type itemState uint8

const (
	itemDetached   itemState = iota // in no heap: about to get another state
	itemLeased                      // in subscription.timers
	itemWaiting                     // in subscription.timers
	itemReady                       // in cursor.ready
	itemDeadLetter                  // being moved to the dead letter topic
)

// itemHeap is a binary heap of items by time or by entry. Items store their index, so that
// any of them can be removed.
type itemHeap []*item

func byTime(a, b *item) bool  { return a.at < b.at }
func byEntry(a, b *item) bool { return a.entry < b.entry }

func (h *itemHeap) push(it *item, less func(a, b *item) bool) {
	it.index = len(*h)
	*h = append(*h, it)
	h.up(it.index, less)
}

func (h *itemHeap) remove(it *item, less func(a, b *item) bool) {
	i, last := it.index, len(*h)-1
	if i != last {
		(*h)[i] = (*h)[last]
		(*h)[i].index = i
	}
	(*h)[last] = nil
	*h = (*h)[:last]
	if i != last {
		h.fix(i, less)
	}
}

func (h *itemHeap) fix(i int, less func(a, b *item) bool) {
	if !h.down(i, less) {
		h.up(i, less)
	}
}

func (h *itemHeap) up(i int, less func(a, b *item) bool) {
	s := *h
	for i > 0 {
		parent := (i - 1) / 2
		if !less(s[i], s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		s[i].index, s[parent].index = i, parent
		i = parent
	}
}

func (h *itemHeap) down(i int, less func(a, b *item) bool) (moved bool) {
	s := *h
	for {
		child := 2*i + 1
		if child >= len(s) {
			return moved
		}
		if r := child + 1; r < len(s) && less(s[r], s[child]) {
			child = r
		}
		if !less(s[child], s[i]) {
			return moved
		}
		s[i], s[child] = s[child], s[i]
		s[i].index, s[child].index = i, child
		i, moved = child, true
	}
}
