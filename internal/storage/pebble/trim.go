package pebble

import (
	"context"
	"errors"
	"sort"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// trim applies TTL, backlog quota and retention to a topic, and adds it to the due index
// again if there will be more to trim.
func (e *Engine) trim(id engine.TopicID) error {
	t, err := e.topics.acquire(context.Background(), id)
	if errors.Is(err, engine.ErrNoTopic) {
		return nil // deleted with its due key
	}
	if err != nil {
		return err
	}
	defer t.release()
	t.admin.Lock()
	defer t.admin.Unlock()
	now := time.Now()
	if !t.dueAt(now.UnixMilli()) {
		return nil // trimmed already; the due key is deleted with that commit batch
	}
	if err := t.expireBacklogLocked(now); err != nil {
		return err
	}
	ends := t.ends()
	plan, err := t.planTrimLocked(now)
	if err != nil {
		return err
	}
	g, err := e.commit.lockBatch()
	if err != nil {
		return err
	}
	defer e.commit.unlockAndCommit()
	if t.deleted.Load() {
		return nil
	}
	for _, c := range plan.cuts {
		c.applyLocked(g)
	}
	t.unscheduleTrimLocked(g)
	for i, p := range *t.parts.Load() {
		if i >= len(ends) || p.next > ends[i] {
			plan.scheduleAt(now.UnixMilli()) // messages that were not durable yet were not considered
		}
	}
	if plan.due != 0 {
		t.scheduleTrimLocked(g, max(plan.due, now.Add(e.opts.TrimDelay).UnixMilli()))
	}
	return nil
}

// ends returns the durable end of each partition.
func (t *topic) ends() []uint64 {
	var ends []uint64
	for _, p := range *t.parts.Load() {
		ends = append(ends, p.durable.Load())
	}
	return ends
}

// dueAt reports whether the topic is due for trimming.
func (t *topic) dueAt(now int64) bool {
	t.e.commit.mu.Lock()
	defer t.e.commit.mu.Unlock()
	return t.trimDue != 0 && t.trimDue <= now
}

// expireBacklogLocked settles messages that exceed the TTL or the backlog quota. The caller
// holds topic.admin.
func (t *topic) expireBacklogLocked(now time.Time) error {
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
			if _, err := s.skipBeforeLocked(now.Add(-config.TTL).UnixMilli() + 1); err != nil {
				return err
			}
		}
		excess := t.written() - s.acked.Load() - config.BacklogBytes
		if !evict || excess <= 0 {
			continue
		}
		floors, err := s.walkOldestLocked(func(size int64) bool {
			if excess <= 0 {
				return false
			}
			excess -= size
			return true
		})
		if err != nil {
			return err
		}
		if _, err := s.raiseLocked(floors); err != nil {
			return err
		}
	}
	return nil
}

// cut deletes a partition's entries below to.
type cut struct {
	part      *partition
	to        uint64
	cum       int64    // bytes ever written before to
	delays    bool     // some entries may be in the index of delayed entries
	dedupKeys [][]byte // deduplication keys to delete with the entries
}

// applyLocked adds the cut to the commit batch. The caller holds committer.mu.
func (c *cut) applyLocked(g *commitBatch) {
	p, id := c.part, c.part.topic.id
	eras := p.cutErasLocked(g, p.first.Load(), c.to)
	p.topic.noteFreedLocked(g, c.cum-p.firstCum.Load(), eras)
	if c.delays {
		g.deleteRangeLocked(delayKey(id, p.index, 0), delayKey(id, p.index, c.to))
	}
	for _, key := range c.dedupKeys {
		g.deleteLocked(key)
	}
	p.undelay(c.to)
	p.topic.storeLocked(p.firstCum.Load() - c.cum)
	p.firstCum.Store(c.cum)
	p.first.Store(c.to)
	head := headValue{first: c.to, cum: c.cum, lastPublish: p.publish}
	g.setLocked(partitionKey(ofHead, id, p.index), packHead(head))
	g.pinLocked(p.topic)
}

type trimPlan struct {
	cuts []*cut
	due  int64 // when to trim again, 0 for never
}

func (plan *trimPlan) scheduleAt(at int64) {
	if plan.due == 0 || at < plan.due {
		plan.due = at
	}
}

// planTrimLocked decides what retention deletes. The caller holds topic.admin.
func (t *topic) planTrimLocked(now time.Time) (*trimPlan, error) {
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
			// Every partition deletes its share of the excess.
			excess = int64(float64(total-config.RetainBytes)*float64(settled[i])/float64(total)) + 1
		}
		if err := t.planPartitionLocked(plan, p, floors[i], excess, config, now); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// settledFloors returns, per partition, the entry below which every subscription has settled.
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

func (t *topic) planPartitionLocked(plan *trimPlan, p *partition, floor uint64, excess int64,
	config *engine.TopicConfig, now time.Time,
) error {
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
		if to, err = t.planDedupLocked(plan, c, first, to, now); err != nil {
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

// planNext schedules the next trimming of the partition.
func (p *partition) planNext(plan *trimPlan, first, floor uint64, config *engine.TopicConfig) error {
	if first < floor && config.RetainAge > 0 {
		head, err := p.headNear(first, p.durable.Load())
		if err != nil {
			return ignoreMissing(err)
		}
		plan.scheduleAt(head.publish + config.RetainAge.Milliseconds())
	}
	if floor < p.durable.Load() && config.TTL > 0 {
		head, err := p.headNear(floor, p.durable.Load())
		if err != nil {
			return ignoreMissing(err)
		}
		plan.scheduleAt(head.publish + config.TTL.Milliseconds())
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

// dedupRound limits how many messages of a deduplicating topic are trimmed in one commit
// batch, since each needs a delete of its own.
const dedupRound = 10_000

// planDedupLocked keeps messages inside the deduplication window, and lists the
// deduplication keys of the others. The caller holds topic.admin.
func (t *topic) planDedupLocked(plan *trimPlan, c *cut, first, to uint64, now time.Time) (uint64, error) {
	window := t.e.opts.DedupWindow
	old, err := c.part.firstAt(now.Add(-window).UnixMilli() + 1)
	if err != nil {
		return first, err
	}
	if old < to {
		if head, err := c.part.head(old); err == nil {
			plan.scheduleAt(head.publish + window.Milliseconds())
		}
		to = max(old, first)
	}
	upTo, err := t.listDedupLocked(c, first, to)
	if upTo < to {
		plan.scheduleAt(now.UnixMilli())
	}
	return upTo, err
}

// listDedupLocked lists the deduplication keys of the entries below to, up to dedupRound
// messages, and returns the entry up to which it got. The caller holds topic.admin.
func (t *topic) listDedupLocked(c *cut, first, to uint64) (uint64, error) {
	// Only single messages have deduplication keys; messages of batches do not.
	looked := 0
	err := c.part.eachValue(first, to, func(key, value []byte) (bool, error) {
		head, err := verify(key, value)
		if err != nil || head.isBatch {
			return true, nil //nolint:nilerr // a damaged message is deleted without its key
		}
		entry := messageEntry(key)
		if looked++; looked > dedupRound {
			to = entry
			return false, nil
		}
		r, err := decode(key, value, c.part.id(entry))
		if err != nil || r.Dedup.IsZero() {
			return true, nil //nolint:nilerr // likewise
		}
		if id, found, err := t.original(r.Dedup); err == nil && found && id == r.ID {
			c.dedupKeys = append(c.dedupKeys, dedupKey(t.id, r.Dedup))
		}
		return true, nil
	})
	if err != nil && !errors.Is(err, engine.ErrCorrupt) {
		return first, err
	}
	return to, nil
}
