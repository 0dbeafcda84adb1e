package pebble

import (
	"context"
	"errors"
	"sync"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// dedup finds messages of a topic by their deduplication keys. Durable messages are in the
// store; pending contains those of commit batches that have not completed.
type dedup struct {
	mu sync.Mutex // makes the search for a duplicate and the append one step

	pendingMu sync.Mutex // protects pending; a leaf, which completing batches take
	pending   map[engine.DedupKey]pendingMessage
}

type pendingMessage struct {
	id    engine.MessageID
	batch *commitBatch
}

// anyKey reports whether any of the messages can be a duplicate.
func (*dedup) anyKey(drafts []draft) bool {
	for i := range drafts {
		if !drafts[i].msg.Dedup.IsZero() {
			return true
		}
	}
	return false
}

// appendOnce is appendMessages for a topic that deduplicates. It releases dedup.mu before it waits
// for the commit batch.
func (p *partition) appendOnce(ctx context.Context, drafts []draft, need int) ([]engine.Appended, error) {
	t := p.topic
	out := make([]engine.Appended, len(drafts))
	now := time.Now().UnixMilli()
	t.dedup.mu.Lock()
	waits, fresh, err := t.findDuplicatesLocked(drafts, out)
	if err != nil {
		t.dedup.mu.Unlock()
		return nil, err
	}
	if fresh > 0 {
		g, err := p.writeFreshLocked(ctx, drafts, out, need, now)
		if err != nil {
			t.dedup.mu.Unlock()
			return nil, err
		}
		waits = append(waits, g)
	}
	t.dedup.mu.Unlock()
	for _, g := range waits {
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// findDuplicatesLocked stores in out which messages are duplicates of earlier appends. It returns
// the commit batches of earlier appends that are not durable yet, and the number of new
// messages. The caller holds dedup.mu.
func (t *topic) findDuplicatesLocked(drafts []draft,
	out []engine.Appended,
) (waits []*commitBatch, fresh int, err error) {
	for i := range drafts {
		key := drafts[i].msg.Dedup
		if key.IsZero() {
			fresh++
			continue
		}
		if first, ok := t.dedup.find(key); ok {
			out[i] = engine.Appended{ID: first.id, Duplicate: true}
			waits = append(waits, first.batch)
			continue
		}
		id, found, err := t.original(key)
		if err != nil {
			return nil, 0, err
		}
		if !found {
			fresh++
			continue
		}
		out[i] = engine.Appended{ID: id, Duplicate: true}
	}
	return waits, fresh, nil
}

// original looks up a durable message by its deduplication key.
func (t *topic) original(key engine.DedupKey) (engine.MessageID, bool, error) {
	body, err := t.e.get(dedupKey(t.id, key))
	if errors.Is(err, cdb.ErrNotFound) {
		return engine.MessageID{}, false, nil
	}
	if err != nil {
		return engine.MessageID{}, false, err
	}
	u := unpack(body)
	id := engine.MessageID{Topic: t.id, Partition: int32(u.Uvarint()), Entry: u.Uvarint()}
	return id, true, u.Err()
}

// writeFreshLocked appends the messages that out does not mark as duplicates. The caller
// holds dedup.mu.
func (p *partition) writeFreshLocked(ctx context.Context, drafts []draft, out []engine.Appended, need int,
	now int64,
) (*commitBatch, error) {
	t := p.topic
	g, err := t.lockForAppend(ctx, need)
	if err != nil {
		return nil, err
	}
	defer t.e.commit.unlockAndCommit()
	var keys []engine.DedupKey
	for i := range drafts {
		if out[i].Duplicate {
			continue
		}
		key := drafts[i].msg.Dedup
		if !key.IsZero() {
			if first, ok := t.dedup.find(key); ok { // a duplicate within this append
				out[i] = engine.Appended{ID: first.id, Duplicate: true}
				continue
			}
		}
		id := p.appendLocked(g, &drafts[i], now)
		out[i].ID = id
		if !key.IsZero() {
			keys = append(keys, key)
			t.dedup.add(key, pendingMessage{id: id, batch: g})
			var body wire.Writer
			body.Uvarint(uint64(id.Partition))
			body.Uvarint(id.Entry)
			g.setLocked(dedupKey(t.id, key), body)
		}
	}
	if len(keys) > 0 {
		g.after = append(g.after, func() { t.dedup.forgetDurable(keys) })
	}
	t.scheduleAfterAppendLocked(g, now)
	return g, nil
}

func (d *dedup) find(key engine.DedupKey) (pendingMessage, bool) {
	d.pendingMu.Lock()
	defer d.pendingMu.Unlock()
	p, ok := d.pending[key]
	return p, ok
}

func (d *dedup) add(key engine.DedupKey, p pendingMessage) {
	d.pendingMu.Lock()
	defer d.pendingMu.Unlock()
	if d.pending == nil {
		d.pending = make(map[engine.DedupKey]pendingMessage)
	}
	d.pending[key] = p
}

// forgetDurable removes pending messages that have become durable.
func (d *dedup) forgetDurable(keys []engine.DedupKey) {
	d.pendingMu.Lock()
	defer d.pendingMu.Unlock()
	for _, k := range keys {
		delete(d.pending, k)
	}
}
