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
	err = retry(ctx, func(ctx context.Context) error {
		_, err := j.look(ctx)
		return err
	})
	leave()
	if err != nil {
		return after, j.failed(parent, "reading", err)
	}
	tail, _ := j.end()
	last := after
	for last < tail.last {
		// Each batch gets the full timeout, because a long journal takes longer to read.
		ctx, leave, err := j.s.enter(parent)
		if err != nil {
			return last, err
		}
		var visitErr error
		err = j.part(ctx, &last, tail.last, func(position uint64, record []byte) error {
			visitErr = visit(position, record)
			return visitErr
		})
		leave()
		switch {
		case visitErr != nil:
			return last, visitErr
		case err != nil:
			return last, j.failed(parent, "reading", err)
		}
	}
	return last, nil
}

// part visits a batch of the records after last up to end, and advances last.
func (j *journal) part(ctx context.Context, last *uint64, end uint64, visit func(uint64, []byte) error) error {
	if *last < j.compacted() {
		return engine.ErrCompacted
	}
	seq, err := j.place(ctx, *last+1)
	if err != nil {
		return err
	}
	var found []stored
	err = retry(ctx, func(ctx context.Context) error {
		found, err = j.s.near(ctx, j.stream, j.recordSubject(), seq)
		if errors.Is(err, errNoMessage) {
			return j.explain(ctx, *last)
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
			return j.explain(ctx, *last)
		}
		j.note(m.mark())
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

// compacted returns the position of the latest known snapshot.
func (j *journal) compacted() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snap.Position
}

// explain returns why no record exists after a position: ErrCompacted when a snapshot
// replaced it, else ErrCorrupt.
func (j *journal) explain(ctx context.Context, last uint64) error {
	if _, err := j.latest(ctx); err != nil {
		return err
	}
	if last < j.compacted() {
		return engine.ErrCompacted
	}
	return fmt.Errorf("%w: journal %q has no record at position %d", engine.ErrCorrupt, j.name, last+1)
}

// place returns the sequence of the message that contains a position, or an earlier
// sequence with no record in between.
func (j *journal) place(ctx context.Context, position uint64) (uint64, error) {
	j.mu.Lock()
	snap := j.snap
	i, _ := slices.BinarySearchFunc(j.marks, position, func(m mark, p uint64) int { return cmpUint(m.last, p) })
	known := i < len(j.marks) && j.marks[i].first <= position
	var seq uint64
	switch {
	case known:
		seq = j.marks[i].seq
	case i > 0 && i == len(j.marks) && j.marks[i-1].last+1 == position:
		known, seq = true, j.marks[i-1].seq+1
	case position == snap.Position+1:
		known, seq = true, max(snap.Sequence, 1)
	case position == 1:
		known, seq = true, 1
	}
	j.mu.Unlock()
	if known {
		return seq, nil
	}
	return j.search(ctx, position)
}

// search finds the message that contains a position by binary search over the stream.
func (j *journal) search(ctx context.Context, position uint64) (uint64, error) {
	low := uint64(1)
	tail, _ := j.end()
	for high := tail.seq; low <= high; {
		middle := low + (high-low)/2
		var found stored
		err := retry(ctx, func(ctx context.Context) error {
			var err error
			found, err = j.s.get(ctx, j.stream, getRequest{Seq: middle, NextFor: j.recordSubject()})
			if errors.Is(err, errNoMessage) {
				found, err = stored{}, nil
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
		j.note(m.mark())
		switch {
		case m.first > position:
			high = middle - 1
		case m.last() < position:
			low = m.seq + 1
		default:
			return m.seq, nil
		}
	}
	return 0, j.explain(ctx, position-1)
}
