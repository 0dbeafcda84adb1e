package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
)

// maxRead limits how many messages one Read returns.
const maxRead = 10_000

// iterateFrom is the number of records from which on an iterator is faster than single
// lookups.
const iterateFrom = 4

// reader reads records with single lookups or with an iterator.
type reader struct {
	e     *Engine
	iter  *cdb.Iterator
	part  *partition   // partition of batch
	batch *splitWindow // the part of a batch that was read last
}

// iterate makes the reader use an iterator.
func (r *reader) iterate() error {
	prefix := []byte{keyMessage}
	iter, err := r.e.db.NewIter(&cdb.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	r.iter = iter
	return storeError(err)
}

func (r *reader) close() {
	if r.iter != nil {
		_ = r.iter.Close()
	}
}

// read returns a record and its stored size.
func (r *reader) read(ctx context.Context, p *partition, entry uint64) (engine.Record, int64, error) {
	if err := r.e.damage.recent(p.id(entry)); err != nil {
		return engine.Record{}, 0, err
	}
	if p.hasBatches.Load() {
		rec, size, err := r.readBatch(ctx, p, entry)
		return rec, size, p.recordDamage(entry, err)
	}
	if r.iter == nil {
		return p.read(ctx, entry)
	}
	var key [messageKeyLen]byte
	putMessageKey(key[:], p.eraOf(entry), p.topic.id, p.index, entry)
	if !r.iter.Valid() || !r.iter.Next() || !bytes.Equal(r.iter.Key(), key[:]) {
		if !r.iter.SeekGE(key[:]) || !bytes.Equal(r.iter.Key(), key[:]) {
			if err := r.iter.Error(); err != nil {
				return engine.Record{}, 0, p.recordDamage(entry, storeError(err))
			}
			return engine.Record{}, 0, cdb.ErrNotFound
		}
	}
	value, err := r.iter.ValueAndErr()
	if err != nil {
		return engine.Record{}, 0, p.recordDamage(entry, storeError(err))
	}
	rec, err := decode(key[:], value, p.id(entry))
	return rec, int64(len(value)), p.recordDamage(entry, err)
}

// read returns a record and its stored size.
func (p *partition) read(ctx context.Context, entry uint64) (engine.Record, int64, error) {
	if p.hasBatches.Load() {
		r := reader{e: p.topic.e}
		defer r.close()
		return r.read(ctx, p, entry)
	}
	var key [messageKeyLen]byte
	putMessageKey(key[:], p.eraOf(entry), p.topic.id, p.index, entry)
	value, closer, err := p.topic.e.db.Get(key[:])
	if err != nil {
		return engine.Record{}, 0, p.recordDamage(entry, storeError(err))
	}
	defer closer.Close()
	r, err := decode(key[:], value, p.id(entry))
	return r, int64(len(value)), p.recordDamage(entry, err)
}

// head returns the head of a record; for a damaged record only the size is set.
func (p *partition) head(entry uint64) (recordHead, error) {
	if p.hasBatches.Load() {
		return p.batchHead(entry)
	}
	var key [messageKeyLen]byte
	putMessageKey(key[:], p.eraOf(entry), p.topic.id, p.index, entry)
	value, closer, err := p.topic.e.db.Get(key[:])
	if err != nil {
		return recordHead{}, storeError(err)
	}
	defer closer.Close()
	head, err := verify(key[:], value)
	head.size = int64(len(value))
	return head, err
}

// cumBefore returns the bytes that were ever written before an entry.
func (p *partition) cumBefore(entry uint64) (int64, error) {
	if entry <= p.first.Load() {
		return p.firstCum.Load(), nil
	}
	head, err := p.head(entry - 1)
	if err == nil {
		return head.cum, nil
	}
	if errors.Is(err, cdb.ErrNotFound) { // trimmed meanwhile
		return p.firstCum.Load(), nil
	}
	if next, err := p.head(entry); err == nil { // the next record has the value too
		return next.cum - next.size, nil
	}
	if errors.Is(err, engine.ErrCorrupt) {
		return p.cumBeforeDamage(entry)
	}
	return 0, err
}

// firstAt returns the first entry published at or after a time.
func (p *partition) firstAt(millis int64) (uint64, error) {
	lo, hi := p.first.Load(), p.durable.Load()
	var failure error
	n := sort.Search(int(hi-lo), func(i int) bool {
		head, err := p.headNear(lo+uint64(i), hi)
		if errors.Is(err, cdb.ErrNotFound) {
			return false // trimmed meanwhile, so it was published before
		}
		if err != nil {
			failure = err
			return false
		}
		return head.publish >= millis
	})
	return lo + uint64(n), failure
}

// Read implements engine.Log.
func (e *Engine) Read(ctx context.Context, id engine.TopicID, req engine.ReadRequest) ([]engine.Record, error) {
	t, err := e.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if req.Max < 1 {
		return nil, fmt.Errorf("%w: read at least one message", engine.ErrInvalid)
	}
	var s *subscription
	if req.Subscription != "" {
		if s, err = t.subscription(ctx, req.Subscription); err != nil {
			return nil, err
		}
	}
	deadline := time.Now().Add(req.Wait)
	for {
		parts, grown, err := t.readable(req)
		if err != nil {
			return nil, err
		}
		out, err := t.read(ctx, parts, s, req)
		if err != nil || len(out) > 0 || req.Wait <= 0 {
			return out, err
		}
		if more, err := e.waitAppended(ctx, grown, time.Until(deadline)); !more || err != nil {
			return nil, err
		}
		if t.deleted.Load() {
			return nil, engine.ErrNoTopic
		}
	}
}

// readable returns the partitions that a request covers, and a channel that is closed when
// one of them grows. The channel is nil when the request does not wait.
func (t *topic) readable(req engine.ReadRequest) ([]*partition, <-chan struct{}, error) {
	tail, one := &t.tail, (*partition)(nil)
	if req.Partition != engine.AllPartitions {
		var err error
		if one, err = t.partition(req.Partition); err != nil {
			return nil, nil, err
		}
		tail = &one.tail
	}
	var grown <-chan struct{}
	if req.Wait > 0 {
		grown = tail.wait()
	}
	if one != nil {
		return []*partition{one}, grown, nil
	}
	return *t.parts.Load(), grown, nil
}

// readFrom returns the first entry of a partition that a request covers.
func readFrom(req engine.ReadRequest, p *partition) uint64 {
	switch {
	case req.FromEach == nil || req.Partition != engine.AllPartitions:
		return req.From
	case int(p.index) < len(req.FromEach):
		return req.FromEach[p.index]
	}
	return 0
}

func (e *Engine) waitAppended(ctx context.Context, grown <-chan struct{}, wait time.Duration) (bool, error) {
	if wait <= 0 {
		return false, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-grown:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-e.closing:
		return false, e.closedCause()
	case <-e.stopped:
		return false, e.stopCause()
	}
}

// read returns durable messages of the partitions in the order of their publish times.
func (t *topic) read(ctx context.Context, parts []*partition, s *subscription,
	req engine.ReadRequest,
) ([]engine.Record, error) {
	m, err := t.merge(parts, func(p *partition) (uint64, error) {
		from := max(readFrom(req, p), p.first.Load())
		if err := t.e.damage.recent(p.id(from)); err != nil && s == nil && len(parts) == 1 && req.Since.IsZero() {
			return 0, err
		}
		if req.Since.IsZero() {
			return from, nil
		}
		at, err := p.firstAt(req.Since.UnixMilli())
		return max(from, at), err
	})
	if err != nil {
		return nil, err
	}
	defer m.close()
	var out []engine.Record
	total, limit := 0, min(req.Max, maxRead)
	for len(out) < limit {
		p, entry, ok := m.next()
		if !ok {
			break
		}
		if s != nil {
			if err := s.lockLoaded(); err != nil {
				return nil, err
			}
			acked := s.cursors[p.index].isAckedLocked(entry)
			s.mu.Unlock()
			if acked {
				continue
			}
		}
		r, err := m.record(ctx)
		if err != nil {
			m.err = err
			break
		}
		if total += r.Weight(); req.MaxBytes > 0 && total > req.MaxBytes && len(out) > 0 {
			break
		}
		out = append(out, r)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if len(out) > 0 && (errors.Is(m.err, engine.ErrCorrupt) || errors.Is(m.err, unpacking.ErrBusy)) {
		return out, nil // the next Read, which starts there, returns the error
	}
	return out, m.err
}
