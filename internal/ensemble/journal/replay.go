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
	batch, err := j.fetchBatch(ctx, *last)
	if err != nil {
		return err
	}
	for _, m := range batch {
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

// fetchBatch reads and verifies the messages with the records after a position, at least one. The
// nearest replica serves them. When its response does not continue the records before, the leader is
// asked, and after that the other replicas, so that one damaged replica harms nobody. The error is a
// lossError when a majority of them has no such record.
func (j *journal) fetchBatch(ctx context.Context, last uint64) ([]*message, error) {
	if last < j.compactedPosition() {
		return nil, engine.ErrCompacted
	}
	var loss *lossError
	seq, err := j.sequenceOf(ctx, last+1)
	if errors.As(err, &loss) && loss != errFenced {
		return j.fetchElsewhere(ctx, last, loss)
	}
	if err != nil {
		return nil, err
	}
	var batch []*message
	doubtful := false // the nearest replica has other records than the leader, or lacks some
	err = withRetry(ctx, func(ctx context.Context) error {
		found, err := j.s.getNearest(ctx, j.stream, j.recordSubject(), seq)
		if err == nil {
			if batch, err = j.verifyBatch(last, found); err == nil && len(batch) > 0 {
				return nil
			}
			doubtful = true
		}
		if err := j.gone(err); err != nil && !isFinal(err) && !errors.Is(err, errNoMessage) {
			return err
		}
		one, err := j.get(ctx, getRequest{Seq: seq, NextFor: j.recordSubject()})
		if err == nil {
			batch, err = j.verifyBatch(last, []storedMessage{one})
		}
		if errors.Is(err, errNoMessage) || err == nil && len(batch) == 0 {
			return j.missingRecordError(ctx, last)
		}
		return err
	})
	switch {
	case err == nil && doubtful:
		j.checkNearest(last, batch[0])
	case errors.As(err, &loss) && loss != errFenced:
		return j.fetchElsewhere(ctx, last, loss)
	}
	return batch, err
}

// verifyBatch decodes the messages that continue the records up to last, verifies them against the
// records before, and notes them. It stops at the first message that does not continue them: a part of
// the response was lost in transit, or the replica is damaged.
func (j *journal) verifyBatch(last uint64, found []storedMessage) (batch []*message, err error) {
	for _, f := range found {
		m, err := decodeStored(f)
		switch {
		case err != nil && len(batch) > 0:
			return batch, nil
		case err != nil:
			return nil, lossOf(err)
		case m.first > last+1:
			return batch, nil
		case m.last() <= last:
			continue
		}
		if err := j.links.follow(m); err != nil {
			if len(batch) > 0 {
				return batch, nil
			}
			return nil, err
		}
		j.observe(m.indexEntry())
		j.accept(m)
		batch, last = append(batch, m), m.last()
	}
	return batch, nil
}

// compactedPosition returns the position of the latest known snapshot.
func (j *journal) compactedPosition() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snap.Position
}

// errSearchAgain means that a record which was missing may be readable now.
var errSearchAgain = errors.New("record may have become readable; try again")

// missingRecordError returns why no record exists after a position: ErrCompacted when a snapshot
// replaced it, else a lossError.
func (j *journal) missingRecordError(ctx context.Context, last uint64) error {
	if _, err := j.latestSnapshot(ctx); err != nil {
		return err
	}
	if last < j.compactedPosition() {
		return engine.ErrCompacted
	}
	// A new leader may not have applied everything yet that was committed.
	if err := j.barrier(ctx); err != nil && !errors.Is(err, errFenced) {
		return err
	}
	seq, known := j.knownSequence(last + 1)
	if !known {
		return errSearchAgain
	}
	found, err := j.get(ctx, getRequest{Seq: seq, NextFor: j.recordSubject()})
	if err == nil {
		var m *message
		if m, err = decodeStored(found); err == nil && m.first <= last+1 && m.last() > last {
			return errSearchAgain
		}
		err = errNoMessage
	}
	if errors.Is(err, errNoMessage) {
		return &lossError{fmt.Sprintf("no record at position %d", last+1)}
	}
	return err
}

// sequenceOf returns the sequence of the message that contains a position, or an earlier
// sequence with no record in between.
func (j *journal) sequenceOf(ctx context.Context, position uint64) (uint64, error) {
	if seq, known := j.knownSequence(position); known {
		return seq, nil
	}
	seq, err := j.searchSequence(ctx, position)
	if !errors.Is(err, errNoMessage) {
		return seq, err
	}
	if err := j.missingRecordError(ctx, position-1); isFinal(err) {
		return 0, err
	}
	// A new leader may not have had everything yet that was committed.
	if seq, err = j.searchSequence(ctx, position); errors.Is(err, errNoMessage) {
		err = &lossError{fmt.Sprintf("no record at position %d", position)}
	}
	return seq, err
}

// knownSequence is sequenceOf without reading the stream.
func (j *journal) knownSequence(position uint64) (seq uint64, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	snap := j.snap
	i, _ := slices.BinarySearchFunc(j.index, position, func(m indexEntry, p uint64) int { return cmpUint(m.last, p) })
	known = i < len(j.index) && j.index[i].first <= position
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
	return seq, known
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
			found, err = j.get(ctx, getRequest{Seq: middle, NextFor: j.recordSubject()})
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
			return 0, lossOf(err)
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
	return 0, errNoMessage
}
