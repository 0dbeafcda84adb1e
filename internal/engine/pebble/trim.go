package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/engine"
)

// keeper trims topics when their time has come and unloads idle ones. What is
// due stands in the store, one key per topic, so that a topic nobody uses
// costs nothing until then, and a crash forgets nothing.
type keeper struct {
	e     *Engine
	mu    sync.Mutex
	soon  []dueTopic  // due within soonWindow: possibly not in the store yet
	full  atomic.Bool // too many topics are loaded
	nudge chan struct{}
	stop  chan struct{}
	ended chan struct{}
}

type dueTopic struct {
	due int64
	id  engine.TopicID
}

const (
	soonWindow = time.Minute
	// trimRound bounds how many topics are trimmed before looking up again.
	trimRound = 1000
	// dedupRound bounds how many messages of a deduplicating topic are trimmed
	// at once, since each takes its own delete.
	dedupRound = 10_000
)

func (k *keeper) start(e *Engine) {
	k.e = e
	k.nudge = make(chan struct{}, 1)
	k.stop = make(chan struct{})
	k.ended = make(chan struct{})
	go k.run()
}

func (k *keeper) close() {
	close(k.stop)
	<-k.ended
}

// schedule enters the topic into the due index, unless it stands there earlier.
// The caller holds committer.mu.
func (t *topic) schedule(g *group, due int64) {
	if t.trimDue != 0 && t.trimDue <= due || t.deleted.Load() {
		return
	}
	t.unschedule(g)
	t.trimDue = due
	var body packer
	body.int(due)
	g.set(dueKey(due, t.id), nil)
	g.set(topicKey(keyDueOf, t.id), body)
	g.hold(t)
	k := &t.e.keeper
	if due-time.Now().UnixMilli() > soonWindow.Milliseconds() {
		return
	}
	k.mu.Lock()
	k.soon = append(k.soon, dueTopic{due, t.id})
	k.mu.Unlock()
	k.wake()
}

func (k *keeper) wake() {
	select {
	case k.nudge <- struct{}{}:
	default:
	}
}

// crowded asks for topics to be unloaded now.
func (k *keeper) crowded() {
	if !k.full.Swap(true) {
		k.wake()
	}
}

func (t *topic) unschedule(g *group) {
	if t.trimDue != 0 {
		g.delete(dueKey(t.trimDue, t.id))
		g.delete(topicKey(keyDueOf, t.id))
		t.trimDue = 0
		g.hold(t)
	}
}

// appended schedules what an append makes due. The caller holds committer.mu.
func (t *topic) appended(g *group, now int64) {
	c := t.config.Load()
	soon := now + t.e.opts.TrimDelay.Milliseconds()
	if c.TTL > 0 {
		t.schedule(g, max(soon, now+c.TTL.Milliseconds()))
	}
	if c.BacklogEvict && c.BacklogBytes > 0 && t.stored > c.BacklogBytes {
		t.schedule(g, soon)
	}
	if c.RetainAge >= 0 {
		t.schedule(g, max(soon, now+c.RetainAge.Milliseconds()))
	}
	if c.RetainBytes >= 0 && t.stored > c.RetainBytes {
		t.schedule(g, soon)
	}
}

// settled schedules what an acknowledgement makes due. The caller holds committer.mu.
func (t *topic) settled(g *group, now int64) {
	c := t.config.Load()
	if c.RetainAge >= 0 && t.trimDue == 0 || c.RetainAge == 0 || c.RetainBytes >= 0 && t.stored > c.RetainBytes {
		t.schedule(g, now+t.e.opts.TrimDelay.Milliseconds())
	}
}

func (k *keeper) run() {
	defer close(k.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	nextEvict := time.Now().Add(k.e.opts.IdleAfter / 2)
	for {
		select {
		case <-timer.C:
		case <-k.nudge:
		case <-k.stop:
			return
		}
		now := time.Now()
		if full := k.full.Swap(false); full || !now.Before(nextEvict) {
			k.e.topics.evict()
			nextEvict = now.Add(k.e.opts.IdleAfter / 2)
		}
		next := k.round(now)
		sleep := time.Until(nextEvict)
		if next != 0 {
			sleep = min(sleep, time.Until(time.UnixMilli(next)))
		}
		timer.Reset(max(sleep, 0))
	}
}

// round trims what is due and returns when the next is, 0 for not known.
func (k *keeper) round(now time.Time) int64 {
	due, next := k.due(now.UnixMilli())
	for _, id := range due {
		select {
		case <-k.stop:
			return 0
		default:
		}
		if err := k.e.trim(id); err != nil && k.e.fault() == nil {
			k.e.log.Error("trim topic", "topic", uint64(id), "error", err)
		}
	}
	if len(due) >= trimRound {
		return now.UnixMilli()
	}
	return next
}

// due returns the topics whose time has come, and the time of the next one.
func (k *keeper) due(now int64) (ids []engine.TopicID, next int64) {
	seen := make(map[engine.TopicID]bool)
	earliest := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	k.mu.Lock()
	rest := k.soon[:0]
	for _, d := range k.soon {
		if d.due > now {
			rest = append(rest, d)
			earliest(d.due)
		} else if !seen[d.id] {
			seen[d.id] = true
			ids = append(ids, d.id)
		}
	}
	k.soon = rest
	k.mu.Unlock()
	prefix := []byte{keyDue}
	iter, err := k.e.db.NewIter(&cdb.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		k.e.log.Error("look for topics to trim", "error", err)
		return ids, next
	}
	defer iter.Close()
	for ok := iter.First(); ok && len(ids) < trimRound; ok = iter.Next() {
		at := int64(binary.BigEndian.Uint64(iter.Key()[1:]))
		if at > now {
			earliest(at)
			break
		}
		if id := engine.TopicID(binary.BigEndian.Uint64(iter.Key()[9:])); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, next
}

// trim applies TTL, backlog quota and retention to a topic, and enters it into
// the due index again when there will be more to do.
func (e *Engine) trim(id engine.TopicID) error {
	t, err := e.topics.acquire(context.Background(), id)
	if errors.Is(err, engine.ErrNoTopic) {
		return nil // deleted; its due key went with it
	}
	if err != nil {
		return err
	}
	defer t.release()
	t.admin.Lock()
	defer t.admin.Unlock()
	now := time.Now()
	if err := t.expireBacklog(now); err != nil {
		return err
	}
	plan, err := t.planTrim(now)
	if err != nil {
		return err
	}
	g, err := e.commit.enter()
	if err != nil {
		return err
	}
	defer e.commit.leave()
	if t.deleted.Load() {
		return nil
	}
	for _, c := range plan.cuts {
		c.apply(g)
	}
	t.unschedule(g)
	if plan.due != 0 {
		t.schedule(g, max(plan.due, now.Add(e.opts.TrimDelay).UnixMilli()))
	}
	return nil
}

// expireBacklog settles messages that are too old or too many.
func (t *topic) expireBacklog(now time.Time) error {
	config := t.config.Load()
	evict := config.BacklogEvict && config.BacklogBytes > 0
	if config.TTL <= 0 && !evict {
		return nil
	}
	for _, name := range t.subscriptionNames() {
		s, err := t.subscription(context.Background(), name)
		if err != nil {
			continue
		}
		if config.TTL > 0 {
			if _, err := s.skipBefore(now.Add(-config.TTL).UnixMilli() + 1); err != nil {
				return err
			}
		}
		excess := t.written() - s.acked.Load() - config.BacklogBytes
		if !evict || excess <= 0 {
			continue
		}
		floors, err := s.oldest(func(size int64) bool {
			if excess <= 0 {
				return false
			}
			excess -= size
			return true
		})
		if err != nil {
			return err
		}
		if _, err := s.raise(floors); err != nil {
			return err
		}
	}
	return nil
}

// cut removes a partition's entries below to.
type cut struct {
	part      *partition
	to        uint64
	cum       int64 // bytes ever written before to
	delays    bool  // some entries may be in the index of delayed ones
	producers [][]byte
}

// apply writes the cut into the group. The caller holds committer.mu.
func (c *cut) apply(g *group) {
	p, id := c.part, c.part.topic.id
	eras := p.cutEras(g, p.first.Load(), c.to)
	p.topic.freed(g, c.cum-p.firstCum.Load(), eras)
	if c.delays {
		g.deleteRange(delayKey(id, p.index, 0), delayKey(id, p.index, c.to))
	}
	for _, key := range c.producers {
		g.delete(key)
	}
	p.topic.stored -= c.cum - p.firstCum.Load()
	p.firstCum.Store(c.cum)
	p.first.Store(c.to)
	head := headValue{first: c.to, cum: c.cum, lastPublish: p.publish}
	g.set(partitionKey(keyHead, id, p.index), packHead(head))
	g.hold(p.topic)
}

type trimPlan struct {
	cuts []*cut
	due  int64 // when to look again, 0 for never
}

func (plan *trimPlan) again(at int64) {
	if plan.due == 0 || at < plan.due {
		plan.due = at
	}
}

// planTrim decides what retention lets go. The caller holds topic.admin.
func (t *topic) planTrim(now time.Time) (*trimPlan, error) {
	config, plan := t.config.Load(), new(trimPlan)
	parts := *t.parts.Load()
	floors := t.settledFloors(parts)
	var settled []int64
	var total int64
	for i, p := range parts {
		cum, err := p.cumBefore(floors[i])
		if err != nil {
			return nil, err
		}
		settled = append(settled, cum-p.firstCum.Load())
		total += settled[i]
	}
	for i, p := range parts {
		var excess int64
		if config.RetainBytes >= 0 && total > config.RetainBytes {
			// Every partition gives up its share of what is too much.
			excess = int64(float64(total-config.RetainBytes)*float64(settled[i])/float64(total)) + 1
		}
		if err := t.planPartition(plan, p, floors[i], excess, config, now); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// settledFloors returns the entry below which every subscription has settled.
func (t *topic) settledFloors(parts []*partition) []uint64 {
	floors := make([]uint64, len(parts))
	for i, p := range parts {
		floors[i] = p.durable.Load()
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.subs {
		s.mu.Lock()
		for i, c := range s.cursors {
			floors[i] = min(floors[i], c.floor)
		}
		s.mu.Unlock()
	}
	return floors
}

func (t *topic) planPartition(plan *trimPlan, p *partition, floor uint64, excess int64, config *engine.TopicConfig, now time.Time) error {
	first := p.first.Load()
	to := first
	var err error
	switch {
	case config.RetainAge == 0 || config.RetainBytes == 0:
		to = floor
	default:
		if config.RetainAge > 0 {
			if to, err = p.firstAt(now.Add(-config.RetainAge).UnixMilli() + 1); err != nil {
				return err
			}
		}
		if excess > 0 {
			bySize, err := p.firstBeyond(p.firstCum.Load() + excess)
			if err != nil {
				return err
			}
			to = max(to, bySize)
		}
		to = min(to, floor)
	}
	c := &cut{part: p, delays: p.hasDelays.Load()}
	if config.Deduplicate && to > first {
		if to, err = t.planDedup(plan, c, first, to, now); err != nil {
			return err
		}
	}
	if to > first {
		c.to = to
		if c.cum, err = p.cumBefore(to); err != nil {
			return err
		}
		plan.cuts = append(plan.cuts, c)
	}
	return p.planNext(plan, to, floor, config)
}

// planNext notes when the partition will have more to trim.
func (p *partition) planNext(plan *trimPlan, first, floor uint64, config *engine.TopicConfig) error {
	if first < floor && config.RetainAge > 0 {
		head, err := p.head(first)
		if err != nil {
			return ignoreMissing(err)
		}
		plan.again(head.publish + config.RetainAge.Milliseconds())
	}
	if floor < p.durable.Load() && config.TTL > 0 {
		head, err := p.head(floor)
		if err != nil {
			return ignoreMissing(err)
		}
		plan.again(head.publish + config.TTL.Milliseconds())
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, cdb.ErrNotFound) {
		return nil
	}
	return err
}

// firstBeyond returns the first entry with at least cum bytes before it.
func (p *partition) firstBeyond(cum int64) (uint64, error) {
	lo, hi := p.first.Load(), p.durable.Load()
	var failure error
	n := sort.Search(int(hi-lo), func(i int) bool {
		before, err := p.cumBefore(lo + uint64(i))
		if err != nil {
			failure = err
		}
		return before >= cum
	})
	return lo + uint64(n), failure
}

// planDedup holds back messages inside the window in which duplicates must be
// found, and lists the index keys that go with the others.
func (t *topic) planDedup(plan *trimPlan, c *cut, first, to uint64, now time.Time) (uint64, error) {
	window := t.e.opts.DedupWindow
	old, err := c.part.firstAt(now.Add(-window).UnixMilli() + 1)
	if err != nil {
		return first, err
	}
	if old < to {
		if head, err := c.part.head(old); err == nil {
			plan.again(head.publish + window.Milliseconds())
		}
		to = max(old, first)
	}
	if to > first+dedupRound {
		to = first + dedupRound
		plan.again(now.UnixMilli())
	}
	for entry := first; entry < to; entry++ {
		r, _, err := c.part.read(entry)
		if errors.Is(err, engine.ErrCorrupt) || errors.Is(err, cdb.ErrNotFound) {
			continue
		}
		if err != nil {
			return first, err
		}
		if !sequenced(&r.Message) {
			continue
		}
		if id, found, err := t.original(&r.Message); err == nil && found && id == r.ID {
			c.producers = append(c.producers, producerKey(t.id, r.Producer, r.Sequence))
		}
	}
	return to, nil
}
