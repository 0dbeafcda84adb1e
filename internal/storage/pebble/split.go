package pebble

import (
	"errors"
	"fmt"

	"freshet/internal/storage/engine"
)

// splitCacheBytes is what the messages of runs that were split take in memory, of
// all stores that share a cache.
const splitCacheBytes = 32 << 20

// splitKey names a run of a store.
type splitKey struct {
	e    *Engine
	part int32
	id   engine.TopicID
	last uint64
}

// splitRun is a run with its messages.
type splitRun struct {
	first   uint64
	head    recordHead
	records []*engine.Record // nil where the run has none any more
}

var (
	errNeutral    = fmt.Errorf("%w: messages of a run do not add up to its length", engine.ErrCorrupt)
	errNoSplitter = errors.New("store has runs of the stream protocol, and was opened without a way to split them")
)

func (p *partition) splitKey(last uint64) splitKey {
	return splitKey{p.topic.e, p.index, p.topic.id, last}
}

// split returns the messages of a run. It is kept for a while: consumers take a
// run message by message.
func (p *partition) split(last uint64, head recordHead, body []byte) (*splitRun, error) {
	e := p.topic.e
	key := p.splitKey(last)
	if run, ok := e.splits.Get(key); ok {
		return run, nil
	}
	run := &splitRun{first: last - head.count + 1, head: head, records: make([]*engine.Record, head.count)}
	body = append([]byte(nil), body...)
	err := e.splitBody(head.format, body, func(i int32, m *engine.Message) error {
		if i < 0 || uint64(i) >= head.count {
			return errNeutral
		}
		run.records[i] = &engine.Record{
			Message: *m, PublishTime: head.publish, Run: head.format,
			ID: p.id(run.first + uint64(i)),
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: run of %d messages cannot be split: %w", engine.ErrCorrupt, head.count, err)
	}
	return e.splits.Add(key, run, int64(len(body))+int64(head.count)*256), nil
}

func (e *Engine) splitBody(format engine.RunFormat, body []byte, each func(i int32, m *engine.Message) error) error {
	if format == neutralRun {
		return splitNeutral(body, each)
	}
	if e.opts.Splitter == nil {
		return errNoSplitter
	}
	return e.opts.Splitter.Split(format, body, each)
}

// holds says whether the run has the entry.
func (r *splitRun) holds(entry uint64) bool {
	return r != nil && entry >= r.first && entry < r.first+r.head.count
}

// record returns a message of the run and its share of the stored bytes. It is the
// caller's own but for the payload, which nobody changes.
func (r *splitRun) record(entry uint64) (engine.Record, int64, bool) {
	i := entry - r.first
	if r.records[i] == nil {
		return engine.Record{}, 0, false
	}
	one := r.head.at(i)
	return *r.records[i], one.size, true
}
