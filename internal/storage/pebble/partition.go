package pebble

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// partition is one log of a topic.
type partition struct {
	topic *topic
	index int32

	eras    atomic.Pointer[[]eraStart] // changed under committer.mu
	durable atomic.Uint64              // entries below are durable and visible
	first   atomic.Uint64              // entries below are trimmed; changed under committer.mu

	firstCum atomic.Int64 // bytes ever written up to first; changed before it

	// protected by committer.mu
	next           uint64 // entry of the next append
	cum            int64  // bytes ever written up to next
	publish        int64  // publish time of the newest message, durable or not
	maxTime        int64  // largest timestamp of a message, durable or not
	durableCum     int64
	durablePublish int64
	lastCommit     *commitBatch // the last commit batch with an append
	endIndex       int          // index of the partition's end in that batch

	hasBatches  atomic.Bool // some values are batches; changed under committer.mu
	recentBatch atomic.Pointer[batchLocation]
	watchers    watchers

	hasDelays atomic.Bool  // the store has an index of its delayed entries
	delayed   atomic.Int64 // len(delays)
	delayMu   sync.Mutex
	delays    map[uint64]int64 // entry → epoch milliseconds before which it is not delivered

	tail broadcast // sent when durable grows
}

// newPartition returns an empty partition.
func (t *topic) newPartition(index int32) *partition {
	p := &partition{topic: t, index: index}
	p.eras.Store(new([]eraStart))
	return p
}

// restoreHead restores the start of the partition.
func (p *partition) restoreHead(body []byte) error {
	head, err := unpackHead(body)
	p.firstCum.Store(head.cum)
	p.first.Store(head.first)
	p.next, p.cum, p.publish = head.first, head.cum, head.lastPublish
	return err
}

// restoreDelay restores one delay.
func (p *partition) restoreDelay(entry uint64, body []byte, now int64) error {
	u := unpack(body)
	p.hasDelays.Store(true)
	if due := u.Varint(); due > now && entry >= p.first.Load() {
		p.delay(entry, due)
	}
	return u.Err()
}

// restoreEnd restores the end of the partition from its newest message, after everything
// else is restored. iter covers all messages of the store.
func (p *partition) restoreEnd(iter *cdb.Iterator) error {
	first := true
	var damaged int64 // bytes of damaged records at the end
	eras := *p.eras.Load()
	for i := len(eras) - 1; i >= 0; i-- {
		start := messageKey(eras[i].era, p.topic.id, p.index, p.first.Load())
		ok := iter.SeekLT(messageKey(eras[i].era, p.topic.id, p.index+1, 0))
		for ; ok && bytes.Compare(iter.Key(), start) >= 0; ok = iter.Prev() {
			value, err := iter.ValueAndErr()
			if err != nil {
				return p.topic.e.recordStoreDamage(storeError(err))
			}
			if first {
				p.next, first = messageEntry(iter.Key())+1, false
			}
			if rec, err := verify(iter.Key(), value); err == nil {
				p.restored(rec.cum+damaged, rec.publish)
				p.maxTime = rec.maxTime
				return nil
			}
			damaged += int64(len(value)) // the record before it has the other values
		}
		if err := p.topic.e.iterError(iter); err != nil {
			return err
		}
	}
	p.restored(p.cum+damaged, p.publish)
	return nil
}

// restored sets the end of the partition; everything in the store is durable.
func (p *partition) restored(cum, publish int64) {
	p.cum, p.publish = cum, publish
	p.durableCum, p.durablePublish = cum, publish
	p.durable.Store(p.next)
}

// delay delays the delivery of an entry until due.
func (p *partition) delay(entry uint64, due int64) {
	p.delayMu.Lock()
	defer p.delayMu.Unlock()
	if p.delays == nil {
		p.delays = make(map[uint64]int64)
	}
	p.delays[entry] = due
	p.delayed.Store(int64(len(p.delays)))
}

// delayedUntil returns when the entry may be delivered, 0 for now.
func (p *partition) delayedUntil(entry uint64, now int64) int64 {
	if p.delayed.Load() == 0 {
		return 0
	}
	p.delayMu.Lock()
	defer p.delayMu.Unlock()
	due, ok := p.delays[entry]
	if ok && due <= now {
		delete(p.delays, entry)
		p.delayed.Store(int64(len(p.delays)))
		return 0
	}
	return due
}

// undelay discards the delays of trimmed entries.
func (p *partition) undelay(below uint64) {
	if p.delayed.Load() == 0 {
		return
	}
	p.delayMu.Lock()
	defer p.delayMu.Unlock()
	for entry := range p.delays {
		if entry < below {
			delete(p.delays, entry)
		}
	}
	p.delayed.Store(int64(len(p.delays)))
}

// countDelayed counts the matching messages that are not due yet.
func (p *partition) countDelayed(now int64, match func(entry uint64) bool) (n uint64) {
	if p.delayed.Load() == 0 {
		return 0
	}
	p.delayMu.Lock()
	defer p.delayMu.Unlock()
	for entry, due := range p.delays {
		if due <= now {
			delete(p.delays, entry)
		} else if match(entry) {
			n++
		}
	}
	p.delayed.Store(int64(len(p.delays)))
	return n
}

// appendLocked adds one message to the commit batch. The caller holds committer.mu.
func (p *partition) appendLocked(g *commitBatch, d *draft, now int64) engine.MessageID {
	entry := p.next
	p.next++
	p.publish = max(p.publish, now)
	p.maxTime = max(p.maxTime, d.msg.Timestamp(p.publish))
	extra := d.extra
	if p.maxTime != p.publish {
		extra |= extraMaxTime
	}
	size := d.size() + extendedHeadLen(extra)
	p.cum += int64(size)
	p.topic.storeLocked(int64(size))
	era := p.enterEraLocked(g, entry, size, compressedEra)
	op := g.batch.SetDeferred(messageKeyLen, size)
	putMessageKey(op.Key, era, p.topic.id, p.index, entry)
	d.put(op.Key, op.Value, extra, p.publish, p.cum, p.maxTime)
	_ = op.Finish()
	g.bytes += messageKeyLen + size
	if due := d.msg.DeliverAt; due > now {
		var body wire.Writer
		body.Varint(due)
		g.setLocked(delayKey(p.topic.id, p.index, entry), body)
		p.hasDelays.Store(true)
		p.delay(entry, due)
	}
	p.recordEndLocked(g)
	return engine.MessageID{Topic: p.topic.id, Partition: p.index, Entry: entry}
}

// announce wakes the readers and consumers that wait for messages of the partition.
func (p *partition) announce() {
	p.tail.send()
	p.watchers.wake()
	p.topic.tail.send()
	p.topic.announce()
}

// broadcast wakes all waiting goroutines at the same time. A goroutine takes the channel
// before it checks its condition, so that it misses no change in between.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // nil while no goroutine waits
}

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) send() {
	b.mu.Lock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
	b.mu.Unlock()
}

// announce serves the waiting consumers of the topic with messages that have become
// durable.
func (t *topic) announce() {
	t.waitMu.Lock()
	if len(t.waiting) == 0 {
		t.waitMu.Unlock()
		return
	}
	subs := make([]*subscription, 0, len(t.waiting))
	for s := range t.waiting {
		subs = append(subs, s)
	}
	t.waitMu.Unlock()
	now := time.Now()
	for _, s := range subs {
		s.mu.Lock()
		s.dispatchLocked(now)
		s.mu.Unlock()
	}
}
