package statemachine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

const (
	maxBatch      = 1024            // updates in one append
	maxBatchBytes = 4 << 20         // no further update joins an append past this
	maxContention = 5 * time.Second // losing appends to other replicas for this long is giving up
)

// update is one caller of Update.
type update[S any] struct {
	ctx    context.Context // the caller's, to skip those who left
	decide func(S) ([][]byte, error)
	done   chan struct{}

	state S
	err   error
	// dependent says that the decision was taken on top of records of this batch
	// that are not durable yet, so that it falls with them.
	dependent bool
	// frees says that its records make room: the journal takes them on a full disk.
	frees bool
	// wrote says that the decision has records of its own.
	wrote bool
}

// Update lets decide look at the newest state and return the records to
// append, none to write nothing. It returns the state after them, once they
// are durable.
//
// Concurrent updates are decided one after the other, each seeing the ones
// before, and share one append. When another replica was faster, the state
// catches up and everyone decides again; so decide must be free of side
// effects but for variables of its caller, and those may be read only when
// Update returned nil or decide's own error. An error of decide fails its own
// caller only.
func (m *Machine[S]) Update(ctx context.Context, decide func(S) ([][]byte, error)) (S, error) {
	return m.update(&update[S]{ctx: ctx, decide: decide, done: make(chan struct{})})
}

// Free is Update for decisions that make room, such as to delete something. They
// are taken when the disk is full.
func (m *Machine[S]) Free(ctx context.Context, decide func(S) ([][]byte, error)) (S, error) {
	return m.update(&update[S]{ctx: ctx, decide: decide, done: make(chan struct{}), frees: true})
}

func (m *Machine[S]) update(u *update[S]) (S, error) {
	var none S
	ctx := u.ctx
	select {
	case m.updates <- u:
	case <-ctx.Done():
		return none, ctx.Err()
	case <-m.ctx.Done():
		return none, ErrClosed
	}
	select {
	case <-u.done:
		return u.state, u.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-m.ctx.Done():
		// The commit loop may have finished this one as it stopped.
		select {
		case <-u.done:
			return u.state, u.err
		default:
			return none, ErrClosed
		}
	}
}

func (m *Machine[S]) commitLoop() {
	batch := make([]*update[S], 0, maxBatch)
	for {
		select {
		case <-m.ctx.Done():
			return
		case u := <-m.updates:
			batch = append(batch[:0], u)
		}
	more:
		for len(batch) < maxBatch {
			select {
			case u := <-m.updates:
				batch = append(batch, u)
			default:
				break more
			}
		}
		for rest := batch; len(rest) > 0; {
			n := m.commit(rest)
			for _, u := range rest[:n] {
				close(u.done)
			}
			rest = rest[n:]
		}
		clear(batch)
	}
}

// commit decides and appends a prefix of batch and returns its length. Every
// update of the prefix has its outcome afterwards.
func (m *Machine[S]) commit(batch []*update[S]) int {
	if err := m.lockWriting(m.ctx); err != nil {
		return failAll(batch, err)
	}
	defer m.unlockWriting()
	for started := time.Now(); time.Since(started) < maxContention; {
		if err := m.Health(); err != nil {
			return failAll(batch, err)
		}
		base := m.current.Load()
		n, next, records := decideAll(base, batch)
		last, err := m.append(base.position, records, batch[0].frees)
		if errors.Is(err, engine.ErrConflict) {
			if err := m.catchUpLocked(m.ctx); err != nil {
				return failAll(batch, err)
			}
			continue
		}
		if err == nil && last != next.position {
			err = errs.Newf(errs.Internal, "journal put the last of %d records behind position %d at %d, want %d",
				len(records), base.position, last, next.position)
		}
		if err != nil {
			// Nothing is known of these records: they are not published, and
			// if they did become durable the tail will bring them.
			err = fmt.Errorf("appending to the journal: %w", err)
			if m.ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", ErrClosed, err)
			}
			if _, stale := m.append(base.position, nil, false); stale != nil {
				return failAll(batch[:n], err)
			}
			failWriters(batch[:n], base.state, err)
			return n
		}
		m.current.Store(next)
		m.noteGrowth(totalSize(records))
		finish(batch[:n], next.state)
		return n
	}
	return failAll(batch, ErrContended)
}

// append writes the records behind a position, or, when there are none, makes
// sure that the journal ends there: refusals and decisions to write nothing are
// answers, too, and must not rest on a state that another replica has left
// behind.
func (m *Machine[S]) append(after uint64, records [][]byte, frees bool) (uint64, error) {
	ctx, cancel := context.WithTimeout(m.ctx, m.opts.AppendTimeout)
	defer cancel()
	if frees {
		ctx = engine.Freeing(ctx)
	}
	if len(records) == 0 {
		last, err := m.journal.Last(ctx)
		if err == nil && last > after {
			err = engine.ErrConflict
		}
		return last, err
	}
	return m.journal.Append(ctx, after, records...)
}

// decideAll lets a prefix of batch decide on a clone of base and applies the
// records to it. An update whose own records cannot be applied gets that as
// its error, and the rest starts over without it. Updates that free something do
// not share an append with others.
func decideAll[S State[S]](base *published[S], batch []*update[S]) (n int, next *published[S], records [][]byte) {
	var failed map[*update[S]]error
again:
	next = &published[S]{position: base.position, state: base.state.Clone()}
	records = records[:0]
	size := 0
	for n = 0; n < len(batch) && size < maxBatchBytes && batch[n].frees == batch[0].frees; n++ {
		u := batch[n]
		u.dependent, u.wrote = len(records) > 0, false
		if u.err = failed[u]; u.err != nil {
			continue
		}
		if u.err = u.ctx.Err(); u.err != nil {
			continue
		}
		decided, err := decide(u, next.state)
		if err != nil {
			u.err = err
			continue
		}
		for _, record := range decided {
			if err := apply(next.state, next.position+1, record); err != nil {
				if failed == nil {
					failed = make(map[*update[S]]error)
				}
				failed[u] = fmt.Errorf("applying a record of this update: %w", err)
				goto again
			}
			next.position++
			size += len(record)
		}
		u.wrote = len(decided) > 0
		records = append(records, decided...)
	}
	return n, next, records
}

// decide keeps a panicking decision from taking the process down.
func decide[S any](u *update[S], state S) (records [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			records, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return u.decide(state)
}

// finish gives the updates without an error of their own the new state.
func finish[S any](batch []*update[S], state S) {
	for _, u := range batch {
		u.state = state
	}
}

// failWriters ends a batch whose append failed: whoever wrote, or decided on top
// of what was written, gets the failure; the others decided on a state that was
// durable and the newest.
func failWriters[S any](batch []*update[S], base S, err error) {
	for _, u := range batch {
		if u.dependent || u.wrote {
			u.err = err
			continue
		}
		u.state = base
	}
}

func failAll[S any](batch []*update[S], err error) int {
	for _, u := range batch {
		u.err = err
	}
	return len(batch)
}

func totalSize(records [][]byte) (n int64) {
	for _, r := range records {
		n += int64(len(r))
	}
	return n
}
