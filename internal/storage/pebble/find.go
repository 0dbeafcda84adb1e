package pebble

import (
	"context"
	"errors"
	"io"
	"sort"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
)

// FindByTime implements engine.Batches.
func (e *Engine) FindByTime(ctx context.Context, id engine.TopicID, index int32,
	millis int64,
) (engine.FindResult, error) {
	return e.find(ctx, id, index, func(*partition) (int64, error) { return millis, nil })
}

// FindNewest implements engine.Batches.
func (e *Engine) FindNewest(ctx context.Context, id engine.TopicID, index int32) (engine.FindResult, error) {
	newest := func(p *partition) (int64, error) {
		if p.first.Load() == p.durable.Load() {
			return 0, nil
		}
		head, err := p.head(p.durable.Load() - 1)
		return head.maxTime, err
	}
	found, err := e.find(ctx, id, index, newest)
	if err != nil || found.OK {
		return found, err
	}
	// The message with the largest timestamp was trimmed.
	return e.find(ctx, id, index, (*partition).largestTime)
}

// largestTime returns the largest timestamp of the messages that are not trimmed.
func (p *partition) largestTime() (int64, error) {
	largest := int64(-1)
	w := storedScan{p: p, visit: func(s *engine.StoredValue) (bool, error) {
		time := s.Run.MaxTime
		if s.Run.Count == 0 {
			time = s.Record.Timestamp(s.PublishTime)
		}
		largest = max(largest, time)
		return true, nil
	}}
	err := w.scan(context.Background(), p.first.Load(), p.durable.Load())
	return largest, err
}

// find returns the first message whose timestamp is at least the result of at.
func (e *Engine) find(ctx context.Context, id engine.TopicID, index int32,
	at func(*partition) (int64, error),
) (engine.FindResult, error) {
	p, err := e.beginPartition(ctx, id, index)
	if err != nil {
		return engine.FindResult{}, err
	}
	defer p.topic.end()
	millis, err := at(p)
	if err != nil {
		return engine.FindResult{}, err
	}
	from, err := p.firstTimed(millis)
	if err != nil {
		return engine.FindResult{}, err
	}
	var found engine.FindResult
	w := storedScan{p: p, visit: func(s *engine.StoredValue) (bool, error) {
		err := e.findInValue(ctx, s, from, millis, &found)
		return !found.OK, err
	}}
	err = w.scan(ctx, from, p.durable.Load())
	return found, err
}

// firstTimed returns the first entry at which the running maximum of the timestamps reaches
// millis. No message before it can match. Timestamps are not in order, but their running
// maximum is.
func (p *partition) firstTimed(millis int64) (uint64, error) {
	lo, hi := p.first.Load(), p.durable.Load()
	var failure error
	n := sort.Search(int(hi-lo), func(i int) bool {
		head, err := p.head(lo + uint64(i))
		if errors.Is(err, cdb.ErrNotFound) {
			return false // trimmed meanwhile
		}
		if err != nil {
			failure = err
		}
		return head.maxTime >= millis
	})
	return lo + uint64(n), failure
}

// findInValue searches a stored value for the first matching message.
func (e *Engine) findInValue(ctx context.Context, s *engine.StoredValue, from uint64, millis int64,
	found *engine.FindResult,
) error {
	if s.Run.Count == 0 {
		if time := s.Record.Timestamp(s.PublishTime); time >= millis {
			*found = engine.FindResult{OK: true, Entry: s.First, Time: time}
		}
		return nil
	}
	if s.Run.MaxTime < millis {
		return nil
	}
	return e.splits.budget.Do(ctx, findBytes, func(r *unpacking.Reservation) error {
		return e.findInBatch(s, from, millis, found, r.Grow)
	})
}

// findBytes is the memory that is reserved at first to search a batch. It suffices for most.
const findBytes = 640 << 10

// findInBatch searches a batch for the first matching message.
func (e *Engine) findInBatch(s *engine.StoredValue, from uint64, millis int64, found *engine.FindResult,
	grow func(total int64) error,
) error {
	reader, err := e.openBatch(s.Run.Format, s.Run.Body)
	if err != nil {
		return err
	}
	defer reader.Close()
	e.splits.budget.CountOpened()
	for next := int32(0); ; {
		i, m, err := reader.Next(next, grow)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		entry := s.First + uint64(i)
		if time := m.Timestamp(s.PublishTime); time >= millis && entry >= from {
			*found = engine.FindResult{OK: true, Entry: entry, Time: time}
			return nil
		}
		next = i + 1
	}
}
