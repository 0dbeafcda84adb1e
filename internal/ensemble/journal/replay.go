package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"freshet/internal/storage/engine"
)

// Replay implements engine.Journal.
func (j *journal) Replay(ctx context.Context, after uint64,
	visit func(position uint64, record []byte) error,
) (uint64, error) {
	parent := ctx
	ctx, leave, err := j.s.enter(ctx)
	if err != nil {
		return after, err
	}
	err = withRetry(ctx, func(ctx context.Context) error {
		_, err := j.refreshTail(ctx)
		return err
	})
	leave()
	if err != nil {
		return after, j.wrapError(parent, "reading", err)
	}
	tail, _ := j.knownTail()
	last := after
	for last < tail.last {
		// Each batch gets the full timeout, because a long journal takes longer to read.
		ctx, leave, err := j.s.enter(parent)
		if err != nil {
			return last, err
		}
		var visitErr error
		err = j.replayBatch(ctx, &last, tail.last, func(position uint64, record []byte) error {
			visitErr = visit(position, record)
			return visitErr
		})
		leave()
		switch {
		case visitErr != nil:
			return last, visitErr
		case err != nil:
			return last, j.wrapError(parent, "reading", err)
		}
	}
	return last, nil
}

// replayBatch visits a batch of the records after last up to end, and advances last.
func (j *journal) replayBatch(ctx context.Context, last *uint64, end uint64, visit func(uint64, []byte) error) error {
	if *last < j.compactedPosition() {
		return engine.ErrCompacted
	}
	seq, err := j.sequenceOf(ctx, *last+1)
	if err != nil {
		return err
	}
	var found []storedMessage
	err = withRetry(ctx, func(ctx context.Context) error {
		found, err = j.s.getNearest(ctx, j.stream, j.recordSubject(), seq)
		if errors.Is(err, errNoMessage) {
			return j.missingRecordError(ctx, *last)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range found {
		m, err := decode(f.seq, f.data)
		if err != nil {
			return err
		}
		if m.first > *last+1 {
			if i > 0 {
				return nil // part of the response was lost in transit; the caller reads again
			}
			return j.missingRecordError(ctx, *last)
		}
		j.observe(m.indexEntry())
		if m.last() <= *last {
			continue
		}
		err = m.records(*last, func(position uint64, record []byte) error {
			if position > end {
				return nil
			}
			if err := visit(position, record); err != nil {
				return err
			}
			*last = position
			return ctx.Err()
		})
		if err != nil || *last >= end {
			return err
		}
	}
	return nil
}

// compactedPosition returns the position of the latest known snapshot.
func (j *journal) compactedPosition() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snap.Position
}

// missingRecordError returns why no record exists after a position: ErrCompacted when a snapshot
// replaced it, else ErrCorrupt.
func (j *journal) missingRecordError(ctx context.Context, last uint64) error {
	if _, err := j.latestSnapshot(ctx); err != nil {
		return err
	}
	if last < j.compactedPosition() {
		return engine.ErrCompacted
	}
	return fmt.Errorf("%w: journal %q has no record at position %d", engine.ErrCorrupt, j.name, last+1)
}

// sequenceOf returns the sequence of the message that contains a position, or an earlier
// sequence with no record in between.
func (j *journal) sequenceOf(ctx context.Context, position uint64) (uint64, error) {
	j.mu.Lock()
	snap := j.snap
	i, _ := slices.BinarySearchFunc(j.index, position, func(m indexEntry, p uint64) int { return cmpUint(m.last, p) })
	known := i < len(j.index) && j.index[i].first <= position
	var seq uint64
	switch {
	case known:
		seq = j.index[i].seq
	case i > 0 && i == len(j.index) && j.index[i-1].last+1 == position:
		known, seq = true, j.index[i-1].seq+1
	case position == snap.Position+1:
		known, seq = true, max(snap.Sequence, 1)
	case position == 1:
		known, seq = true, 1
	}
	j.mu.Unlock()
	if known {
		return seq, nil
	}
	return j.searchSequence(ctx, position)
}

// searchSequence finds the message that contains a position by binary search over the stream.
func (j *journal) searchSequence(ctx context.Context, position uint64) (uint64, error) {
	low := uint64(1)
	tail, _ := j.knownTail()
	for high := tail.seq; low <= high; {
		middle := low + (high-low)/2
		var found storedMessage
		err := withRetry(ctx, func(ctx context.Context) error {
			var err error
			found, err = j.s.get(ctx, j.stream, getRequest{Seq: middle, NextFor: j.recordSubject()})
			if errors.Is(err, errNoMessage) {
				found, err = storedMessage{}, nil
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		if found.seq == 0 { // no record message at or after middle
			high = middle - 1
			continue
		}
		m, err := decode(found.seq, found.data)
		if err != nil {
			return 0, err
		}
		j.observe(m.indexEntry())
		switch {
		case m.first > position:
			high = middle - 1
		case m.last() < position:
			low = m.seq + 1
		default:
			return m.seq, nil
		}
	}
	return 0, j.missingRecordError(ctx, position-1)
}
