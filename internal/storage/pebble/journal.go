package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// journalTable holds the open journals. There are few, so they stay in memory. mu protects
// its fields.
type journalTable struct {
	e    *Engine
	mu   sync.Mutex
	m    map[string]*journal
	next uint32 // number of the next new journal, 0 until it was determined
}

func (jt *journalTable) start(e *Engine) {
	jt.e = e
	jt.m = make(map[string]*journal)
}

// journal is one open journal.
type journal struct {
	e         *Engine
	id        uint32
	name      string
	createdBy *commitBatch // the commit batch that created it; nil when it was loaded

	tail broadcast

	// protected by committer.mu
	assigned  uint64       // position of the last record, durable or not
	durable   uint64       // position of the last durable record
	lastBatch *commitBatch // the commit batch with the last record

	saveMu sync.Mutex // one snapshot is saved at a time
	snapMu sync.Mutex
	snap   snapshot     // the latest durable snapshot; protected by snapMu
	saving *commitBatch // the commit batch that replaces snap; protected by snapMu
	lastID uint64       // highest id of a snapshot ever begun; protected by saveMu
}

var _ engine.Journal = (*journal)(nil)

// Journal implements engine.Engine.
func (e *Engine) Journal(ctx context.Context, name string) (engine.Journal, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	if name == "" || len(name) > maxNameBytes {
		return nil, fmt.Errorf("%w: name of a journal must have 1 to %d bytes", engine.ErrInvalid, maxNameBytes)
	}
	j, err := e.journal.open(name)
	if err != nil {
		return nil, fmt.Errorf("opening journal %q: %w", name, err)
	}
	if j.createdBy != nil {
		if err := j.createdBy.wait(ctx); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (jt *journalTable) open(name string) (*journal, error) {
	jt.mu.Lock()
	defer jt.mu.Unlock()
	if j := jt.m[name]; j != nil {
		return j, nil
	}
	key := append([]byte{keyJournal}, name...)
	body, err := jt.e.get(key)
	var j *journal
	switch {
	case errors.Is(err, cdb.ErrNotFound):
		j, err = jt.createLocked(name, key)
	case err == nil:
		j, err = jt.restoreLocked(name, body)
	}
	if err != nil {
		return nil, err
	}
	jt.m[name] = j
	return j, nil
}

func (jt *journalTable) createLocked(name string, key []byte) (*journal, error) {
	if jt.next == 0 {
		if err := jt.countLocked(); err != nil {
			return nil, err
		}
	}
	g, err := jt.e.commit.lockBatch()
	if err != nil {
		return nil, err
	}
	defer jt.e.commit.unlockAndCommit()
	j := &journal{e: jt.e, id: jt.next, name: name, createdBy: g}
	jt.next++
	var p wire.Writer
	p.Uvarint(uint64(j.id))
	g.setLocked(key, p)
	return j, nil
}

// countLocked determines the number of the next new journal. The caller holds journalTable.mu.
func (jt *journalTable) countLocked() error {
	highest := uint32(0)
	err := jt.e.scan([]byte{keyJournal}, func(_, body []byte) error {
		u := unpack(body)
		highest = max(highest, uint32(u.Uvarint()))
		return u.Err()
	})
	jt.next = highest + 1
	return err
}

func (jt *journalTable) restoreLocked(name string, body []byte) (*journal, error) {
	u := unpack(body)
	j := &journal{e: jt.e, id: uint32(u.Uvarint()), name: name}
	if u.Err() != nil {
		return nil, u.Err()
	}
	if err := j.restoreSnapshot(); err != nil {
		return nil, err
	}
	j.assigned = j.snap.position
	last, err := j.e.lastKey(recordKey(j.id, 0), recordKey(j.id+1, 0))
	if last != nil {
		j.assigned = max(j.assigned, binary.BigEndian.Uint64(last[5:]))
	}
	j.durable = j.assigned
	return j, err
}

// advanceLocked publishes that the records up to last are durable. The caller holds
// committer.mu.
func (j *journal) advanceLocked(last uint64) {
	j.durable = last
	j.tail.send()
}

// Append implements engine.Journal.
func (j *journal) Append(ctx context.Context, after uint64, records ...[]byte) (uint64, error) {
	e := j.e
	if err := e.enter(ctx); err != nil {
		return 0, err
	}
	defer e.leave()
	if !engine.AllowedWhenDiskFull(ctx) {
		if err := e.checkRecordSpace(); err != nil {
			return 0, err
		}
	}
	total := 0
	for _, r := range records {
		total += len(r) + 32
	}
	if total > maxAppendBytes {
		return 0, fmt.Errorf("%w: %d bytes in one append, at most %d", engine.ErrTooLarge, total, maxAppendBytes)
	}
	g, err := e.commit.lockWithCapacity(ctx, total)
	if err != nil {
		return 0, err
	}
	if after != j.assigned {
		return 0, j.rejectAndUnlock(ctx, after)
	}
	if len(records) == 0 {
		e.commit.unlock()
		return after, nil
	}
	for _, r := range records {
		j.assigned++
		g.setLocked(recordKey(j.id, j.assigned), r)
	}
	last := j.assigned
	j.lastBatch = g
	g.journals = append(g.journals, journalEnd{j, last})
	e.commit.unlockAndCommit()
	if err := g.wait(ctx); err != nil {
		return 0, err
	}
	return last, nil
}

// rejectAndUnlock returns the error of an append at the wrong position. It first waits
// until the conflicting record can be read: otherwise the caller would read nothing new and
// conflict again. It is called with committer.mu held and releases it.
func (j *journal) rejectAndUnlock(ctx context.Context, after uint64) error {
	winner, assigned := j.lastBatch, j.assigned
	j.e.commit.unlock()
	if after > assigned {
		return fmt.Errorf("%w: append to journal %q after position %d, but the journal ends at %d", engine.ErrInvalid,
			j.name, after, assigned)
	}
	if winner != nil {
		if err := winner.wait(ctx); err != nil {
			return err
		}
	}
	return engine.ErrConflict
}

// Last implements engine.Journal.
func (j *journal) Last(ctx context.Context) (uint64, error) {
	if err := j.e.enter(ctx); err != nil {
		return 0, err
	}
	defer j.e.leave()
	return j.end(), j.e.live()
}

func (j *journal) end() uint64 {
	j.e.commit.mu.Lock()
	defer j.e.commit.mu.Unlock()
	return j.durable
}

// Wait implements engine.Journal.
func (j *journal) Wait(ctx context.Context, after uint64) error {
	if err := j.e.enter(ctx); err != nil {
		return err
	}
	defer j.e.leave()
	for {
		grown := j.tail.wait()
		if j.end() > after {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-j.e.closing:
			return j.e.closedCause()
		case <-j.e.stopped:
			return j.e.stopCause()
		}
	}
}

// Replay implements engine.Journal.
func (j *journal) Replay(ctx context.Context, after uint64,
	visit func(position uint64, record []byte) error,
) (uint64, error) {
	if err := j.e.enter(ctx); err != nil {
		return after, err
	}
	defer j.e.leave()
	snap, err := j.durableSnapshot(ctx)
	if err != nil {
		return after, err
	}
	if after < snap.position {
		return after, engine.ErrCompacted
	}
	end := j.end()
	if after >= end {
		return after, nil
	}
	last := after
	err = j.e.eachValue(recordKey(j.id, after+1), recordKey(j.id, end+1), func(key, value []byte) (bool, error) {
		position := binary.BigEndian.Uint64(key[5:])
		if position != last+1 {
			return false, nil
		}
		record, err := checkChecksum(key, value)
		if err != nil {
			return false, j.e.recordStoreDamage(err)
		}
		if err := visit(position, record); err != nil {
			return false, err
		}
		last = position
		return true, ctx.Err()
	})
	if err != nil {
		return last, err
	}
	if last < end {
		return last, j.explainGap(ctx, last)
	}
	return last, nil
}

// explainGap returns why a record was missing: a snapshot has replaced it meanwhile, or it
// is lost.
func (j *journal) explainGap(ctx context.Context, last uint64) error {
	snap, err := j.durableSnapshot(ctx)
	if err != nil {
		return err
	}
	if last < snap.position {
		return engine.ErrCompacted
	}
	return j.e.recordStoreDamage(
		fmt.Errorf("%w: journal %q has no record at position %d", engine.ErrCorrupt, j.name, last+1))
}
