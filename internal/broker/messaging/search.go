package messaging

import (
	"context"
	"errors"
	"slices"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

const (
	// searchSlice is how long a search reads with one permit. Between slices it delivers what it has
	// found, and searches of other callers get their turn.
	searchSlice = 50 * time.Millisecond
	// searchHeld bounds the messages that one slice finds, in bytes.
	searchHeld = 8 << 20
	// searchDamaged bounds the damaged messages that a search skips in a slice.
	searchDamaged = 1000
)

// ErrCursor means that a cursor of a search is malformed or belongs to another topic.
var ErrCursor = errs.New(errs.Invalid, "cursor is not valid for this topic")

// Searcher is the part of a broker that finds messages by expressions.
type Searcher struct {
	engine    engine.Batches
	consumer  *Consumer
	pool      *workpool.Pool
	unpacking *unpacking.Budget
	registry  SchemaRegistry // nil means no registry
}

// SearchOptions selects the messages that a Search reads.
type SearchOptions struct {
	Filter     *filter.Filter
	Since      time.Time // first publish time; zero for the first stored message
	Until      time.Time // publish time of the first message after the range; zero for no limit
	Cursor     string    // of a Progress; continues there, and replaces Since
	Partitions []int32   // nil means all
	Limit      int       // ends after this many matches; 0 means no limit
}

// Progress is how far a search is.
type Progress struct {
	Scanned int64  // messages that were read
	Matched int64  // messages that match
	Failed  int64  // messages for which the expression failed, or that are damaged
	Failure error  // the first failure; nil without one
	Total   int64  // messages between the start and the end of the search
	Cursor  string // continues the search after the messages that were read
}

// Search is a running search of a topic. It belongs to one goroutine, and needs no Close.
type Search struct {
	searcher *Searcher
	target   target
	opts     SearchOptions
	matcher  *filter.Evaluator
	parts    []*searchPart
	progress Progress
	found    []Received
	held     int // bytes of found
	full     bool
	deadline time.Time // end of the slice
}

// searchPart is one partition of a search.
type searchPart struct {
	index     int32
	next, end uint64 // entries that are left
	selected  bool
	published int64 // publish time of the last message that was read
}

// Search begins a search. It reads the messages that the topic has now.
func (s *Searcher) Search(ctx context.Context, name names.Topic, opts SearchOptions) (*Search, error) {
	t, stats, err := s.consumer.catalogue.describeFresh(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &Search{searcher: s, target: t, opts: opts}
	out.matcher = opts.Filter.Evaluator(ctx, payloadSchemas{t.topic, s.registry})
	count := max(t.partitions, 1)
	for i := range count {
		part := &searchPart{index: i, selected: out.selects(i)}
		if int(i) < len(stats.Partitions) {
			part.next, part.end = stats.Partitions[i].First, stats.Partitions[i].Next
		}
		out.parts = append(out.parts, part)
	}
	for _, i := range opts.Partitions {
		if i < 0 || i >= count {
			return nil, errs.Newf(errs.NotFound, "%w: topic has no partition %d", engine.ErrNoPartition, i)
		}
	}
	if err := out.seekTime(ctx); err != nil {
		return nil, err
	}
	if opts.Cursor != "" {
		if err := out.seekCursor(opts.Cursor); err != nil {
			return nil, err
		}
	}
	for _, part := range out.parts {
		if part.selected && part.next < part.end {
			out.progress.Total += int64(part.end - part.next) //nolint:gosec // entries are less than 2^63
		}
	}
	return out, nil
}

func (s *Search) selects(partition int32) bool {
	if s.target.partition >= 0 && s.target.partition != partition {
		return false
	}
	return s.opts.Partitions == nil || slices.Contains(s.opts.Partitions, partition)
}

// seekTime moves each partition to the first message since a time, and its end before the first one
// after the range.
func (s *Search) seekTime(ctx context.Context) error {
	for _, part := range s.parts {
		if !part.selected {
			continue
		}
		from, to := part.next, part.end
		var err error
		if !s.opts.Since.IsZero() && s.opts.Cursor == "" {
			if from, err = s.firstSince(ctx, part, s.opts.Since); err != nil {
				return err
			}
		}
		if !s.opts.Until.IsZero() {
			if to, err = s.firstSince(ctx, part, s.opts.Until); err != nil {
				return err
			}
		}
		part.next, part.end = from, max(from, to)
	}
	return nil
}

// firstSince returns the first entry that was published at a time or later, or the end.
func (s *Search) firstSince(ctx context.Context, part *searchPart, at time.Time) (uint64, error) {
	req := engine.ReadRequest{Partition: part.index, Since: at, Max: 1}
	records, err := s.searcher.consumer.read(ctx, s.target.id, req)
	if err != nil {
		return 0, s.target.damagedError(err)
	}
	if len(records) == 0 {
		return part.end, nil
	}
	return records[0].ID.Entry, nil
}

// Next reads for a short time. It returns the matches and the progress, and done at the end of the
// search. The messages are valid until the next call.
func (s *Search) Next(ctx context.Context) (found []Received, progress Progress, done bool, err error) {
	clear(s.found)
	s.found, s.held, s.full = s.found[:0], 0, false
	waiting, stop := s.searcher.consumer.life.untilDrain(ctx)
	defer stop()
	err = s.searcher.pool.Slice(waiting, func() error {
		s.deadline = time.Now().Add(searchSlice)
		return s.slice(waiting)
	})
	if err != nil {
		if ctx.Err() == nil && s.searcher.consumer.life.draining.Err() != nil {
			err = ErrClosing
		}
		return nil, Progress{}, false, err
	}
	s.progress.Cursor = s.cursor()
	return s.found, s.progress, s.oldest() == nil || s.limited(), nil
}

func (s *Search) limited() bool {
	return s.opts.Limit > 0 && s.progress.Matched >= int64(s.opts.Limit)
}

// oldest returns the partition to read next: the one whose last message was published first, so that
// matches are roughly in the order of their publish times. It returns nil at the end.
func (s *Search) oldest() *searchPart {
	var best *searchPart
	for _, part := range s.parts {
		if part.selected && part.next < part.end && (best == nil || part.published < best.published) {
			best = part
		}
	}
	return best
}

// slice reads one partition until the slice ends.
func (s *Search) slice(ctx context.Context) error {
	part := s.oldest()
	if part == nil || s.limited() {
		return nil
	}
	for range searchDamaged {
		extent, err := s.searcher.engine.ReadBatches(ctx, s.target.id, part.index, part.next,
			func(v *engine.StoredValue) (bool, error) { return s.visit(ctx, part, v) })
		var damage *engine.DamagedMessage
		switch {
		case errors.As(err, &damage):
			s.progress.fail(s.target.damagedError(err))
			part.next = max(part.next, damage.ID.Entry) + 1
			continue
		case err != nil:
			return err
		case part.next < extent.First: // trimmed meanwhile
			part.next = extent.First
		}
		if !s.full && time.Now().Before(s.deadline) {
			part.next = max(part.next, part.end) // no messages are left, although entries may be
		}
		return nil
	}
	return nil
}

// fail counts a message for which the expression failed.
func (p *Progress) fail(err error) {
	if p.Failed++; p.Failure == nil {
		if errs.KindOf(err) == errs.Internal { // the error of an expression has no kind
			err = errs.Newf(errs.Invalid, "%w", err)
		}
		p.Failure = err
	}
}
