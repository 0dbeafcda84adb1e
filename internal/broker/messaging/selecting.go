package messaging

import (
	"context"
	"errors"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/retry"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

const (
	// schemasAge is how long a selection uses the schemas of the registry that it has found.
	schemasAge = time.Minute
	// permitPause is how long a selection waits when its caller has too many waiting slices.
	permitPause = 50 * time.Millisecond
)

// selection reads messages with a Tail and selects those for which an expression is true. It belongs to
// one goroutine.
type selection struct {
	searcher *Searcher
	tail     *Tail
	compile  func(*topic) *filter.Evaluator // nil selects every message
	matcher  *filter.Evaluator
	schemas  engine.TopicID // topic whose schemas the payloads have
	topic    *topic         // the version of it that matcher uses
	since    time.Time      // when matcher was created
	progress Progress
	most     int64            // messages that may be read, roughly; 0 means no limit
	last     engine.MessageID // that was read
}

// exhausted reports whether as many messages were read as may be.
func (s *selection) exhausted() bool {
	return s.most > 0 && s.progress.Scanned+s.progress.Failed >= s.most
}

// selection returns a selection of the messages that a tail reads. All of its calls must end before ctx.
func (s *Searcher) selection(ctx context.Context, tail *Tail, f *filter.Filter) selection {
	out := selection{searcher: s, tail: tail, schemas: tail.target.id}
	if f != nil {
		out.compile = func(t *topic) *filter.Evaluator { return f.Evaluator(ctx, payloadSchemas{t, s.registry}) }
	}
	return out
}

// slice waits for messages, and evaluates them for a short time with a permit of the pool. It returns at
// most limit matches, and end if no messages are left to read.
func (s *selection) slice(ctx context.Context, wait time.Duration, limit int) (found []Received, end bool, err error) {
	records, end, err := s.records(ctx, wait)
	if err != nil || len(records) == 0 {
		return nil, end, err
	}
	s.refresh()
	err = s.searcher.withPermit(ctx, func() (err error) {
		deadline := time.Now().Add(searchSlice)
		for {
			for i := range records {
				if r := s.evaluate(&records[i]); r != nil {
					found = append(found, *r)
				}
				if len(found) == limit {
					s.tail.rewind(records[i+1:])
					return nil
				}
			}
			if len(found) > 0 || s.exhausted() || time.Now().After(deadline) {
				return nil
			}
			if records, end, err = s.records(ctx, 0); err != nil || len(records) == 0 {
				return err
			}
		}
	})
	return found, end, err
}

// records reads messages, and returns end if none are left. A damaged message counts as failed and is
// skipped.
func (s *selection) records(ctx context.Context, wait time.Duration) (list []engine.Record, end bool, err error) {
	for range searchDamaged {
		list, err = s.tail.records(ctx, wait)
		var damage *engine.DamagedMessage
		if !errors.As(err, &damage) {
			return list, err == nil && len(list) == 0, err
		}
		s.progress.fail(s.tail.target.damagedError(err))
		s.last = damage.ID
		s.tail.advancePast(damage.ID)
	}
	return nil, false, nil
}

// evaluate returns the message if the expression selects it, else nil.
func (s *selection) evaluate(r *engine.Record) *Received {
	received := s.tail.consumer.received(s.tail.target.topic, r)
	s.progress.Scanned++
	s.last = r.ID
	if s.compile != nil {
		matched, err := s.matcher.Match(received.filterMessage())
		if err != nil {
			s.progress.fail(err)
		}
		if !matched {
			return nil
		}
	}
	s.progress.Matched++
	return &received
}

// refresh replaces the evaluator when the topic has new schemas, and after schemasAge: a tail may last for
// days.
func (s *selection) refresh() {
	if s.compile == nil {
		return
	}
	current := s.tail.target.topic
	if t, ok := s.tail.consumer.catalogue.state.View().byID.Get(s.schemas); ok {
		current = t
	}
	if s.matcher != nil && s.topic == current && time.Since(s.since) < schemasAge {
		return
	}
	s.topic, s.since, s.matcher = current, time.Now(), s.compile(current)
}

// withPermit calls part with a permit of the pool. When too many slices of the caller wait already, it
// tries again: messages that arrive wake all tails and consumers of a topic at the same time.
func (s *Searcher) withPermit(ctx context.Context, part func() error) error {
	for {
		err := s.pool.Slice(ctx, part)
		if !errors.Is(err, workpool.ErrBusy) {
			return err
		}
		if err := retry.Sleep(ctx, permitPause); err != nil {
			return err
		}
	}
}

// FilteredTail is a Tail of the messages that an expression selects. It needs no Close.
type FilteredTail struct{ selection }

// Tail opens a tail of the messages that an expression selects.
func (s *Searcher) Tail(ctx context.Context, name names.Topic, from TailFrom, f *filter.Filter,
) (*FilteredTail, error) {
	tail, err := s.consumer.Tail(ctx, name, from)
	if err != nil {
		return nil, err
	}
	return &FilteredTail{s.selection(ctx, tail, f)}, nil
}

// Next returns matches that were published since the last call. It waits for the first message, and reads
// for a short time: it may return none, although it has read messages.
func (t *FilteredTail) Next(ctx context.Context, wait time.Duration) ([]Received, error) {
	return t.tail.untilDrain(ctx, func(waiting context.Context) ([]Received, error) {
		found, _, err := t.slice(waiting, wait, deliveryBatch)
		return found, err
	})
}

// Progress returns how many messages were read, and the id of the last one. The id is zero if none was.
func (t *FilteredTail) Progress() (Progress, names.MessageID) {
	if t.progress.Scanned+t.progress.Failed == 0 {
		return t.progress, names.MessageID{}
	}
	return t.progress, t.tail.target.messageID(t.last)
}

// Bounds of one call that reads until it has enough matches.
const (
	maxSelecting     = 10 * time.Second
	maxSelectingRead = 10_000 // messages
)

// PeekOptions selects the message that a Peek returns.
type PeekOptions struct {
	Filter   *filter.Filter   // nil selects every message
	After    *names.MessageID // nil means from the first message
	Position int              // among the selected messages, from 1
}

// Peeked is the result of a Peek.
type Peeked struct {
	Message  *Received       // nil if the call has found none
	More     bool            // there may be more messages after Last
	Last     names.MessageID // the last message that was read, if there is more; the next Peek continues after it
	Progress Progress
}

// Peek returns an unacknowledged message of a subscription that an expression selects, without leasing it.
// It reads a limited number of messages.
func (s *Searcher) Peek(ctx context.Context, name names.Topic, subscription string, opts PeekOptions) (Peeked, error) {
	t, err := s.consumer.catalogue.resolve(ctx, name)
	if err != nil {
		return Peeked{}, err
	}
	if t.partition, err = t.singlePartition(); err != nil {
		return Peeked{}, err
	}
	if opts.Position < 1 || opts.Position > peekMax {
		return Peeked{}, errs.Newf(errs.Invalid, "%w: position must be between 1 and %d", engine.ErrInvalid, peekMax)
	}
	tail := &Tail{consumer: s.consumer, target: t, first: t.partition, next: []uint64{0}, subscription: subscription}
	if opts.After != nil {
		id, err := t.engineID(*opts.After)
		if err != nil {
			return Peeked{}, err
		}
		tail.advancePast(id)
	}
	reading := s.selection(ctx, tail, opts.Filter)
	reading.most = maxSelectingRead
	var out Peeked
	_, err = tail.untilDrain(ctx, func(waiting context.Context) ([]Received, error) {
		var err error
		out.Message, out.More, err = reading.nth(waiting, opts.Position)
		return nil, err
	})
	if err != nil {
		return Peeked{}, err
	}
	if out.Progress = reading.progress; out.More {
		out.Last = t.messageID(reading.last)
	}
	return out, nil
}

// nth returns the nth match, and whether there may be more messages. It returns nil if the call has read as
// much as it may.
func (s *selection) nth(ctx context.Context, n int) (match *Received, more bool, err error) {
	for deadline := time.Now().Add(maxSelecting); time.Now().Before(deadline); {
		found, end, err := s.slice(ctx, 0, n)
		switch {
		case err != nil:
			return nil, false, err
		case len(found) == n:
			return &found[n-1], true, nil
		case end:
			return nil, false, nil
		case s.exhausted():
			return nil, true, nil
		}
		n -= len(found)
	}
	return nil, true, nil
}
