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
	maxBatch          = 1024            // maximum number of updates in one append
	maxBatchBytes     = 4 << 20         // size of the records after which no update joins an append
	contentionTimeout = 5 * time.Second // timeout for appends that conflict with other replicas
)

// update is one call of Update.
type update[S any] struct {
	ctx    context.Context // the caller's; updates whose context has ended are skipped
	decide func(S) ([][]byte, error)
	done   chan struct{}

	state S
	err   error
	// dependent means that the decision was made after records of this batch that are not
	// durable yet, so that it fails with them.
	dependent bool
	// whenDiskFull means that its records free space: the journal accepts them on a full disk.
	whenDiskFull bool
	// wrote means that the decision has records of its own.
	wrote bool
}

// Update calls decide with the newest state and appends the records that it returns, which may
// be none. It returns the state after these records, once they are durable.
//
// Concurrent updates are decided one after the other, each on the result of the ones before,
// and share one append. When another replica was faster, the machine catches up and calls
// decide again. So decide must have no side effects except on variables of its caller, and
// those may be read only when Update returns nil or decide's own error. An error of decide
// fails only its own caller.
func (m *Machine[S]) Update(ctx context.Context, decide func(S) ([][]byte, error)) (S, error) {
	return m.update(&update[S]{ctx: ctx, decide: decide, done: make(chan struct{})})
}

// UpdateWhenDiskFull is Update for decisions that free space, such as deletions. It works on a full disk.
func (m *Machine[S]) UpdateWhenDiskFull(ctx context.Context, decide func(S) ([][]byte, error)) (S, error) {
	return m.update(&update[S]{ctx: ctx, decide: decide, done: make(chan struct{}), whenDiskFull: true})
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

// commit decides and appends a prefix of batch and returns its length. Every update of the
// prefix has its result afterwards.
func (m *Machine[S]) commit(batch []*update[S]) int {
	if err := m.lockWriting(m.ctx); err != nil {
		return failAll(batch, err)
	}
	defer m.unlockWriting()
	for started := time.Now(); time.Since(started) < contentionTimeout; {
		if err := m.Health(); err != nil {
			return failAll(batch, err)
		}
		base := m.current.Load()
		n, next, records := decideAll(base, batch)
		last, err := m.append(base.position, records, batch[0].whenDiskFull)
		if errors.Is(err, engine.ErrConflict) {
			if err := m.catchUpLocked(m.ctx); err != nil {
				return failAll(batch, err)
			}
			continue
		}
		if err == nil && last != next.position {
			err = errs.Newf(errs.Internal, "journal stored the last of %d records after position %d at %d, want %d",
				len(records), base.position, last, next.position)
		}
		if err != nil {
			// The outcome is unknown: the records are not published, and if they became
			// durable the tail applies them.
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
		m.countApplied(totalSize(records))
		finish(batch[:n], next.state)
		return n
	}
	return failAll(batch, ErrContended)
}

// append appends the records after a position. Without records it checks that the journal ends
// there, because a rejected update and one that writes nothing must not be decided on an
// outdated state either.
func (m *Machine[S]) append(after uint64, records [][]byte, whenDiskFull bool) (uint64, error) {
	ctx, cancel := context.WithTimeout(m.ctx, m.opts.AppendTimeout)
	defer cancel()
	if whenDiskFull {
		ctx = engine.AllowWhenDiskFull(ctx)
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

// decideAll decides a prefix of batch on a clone of base and applies the records to it. An
// update whose own records cannot be applied gets that error, and the others are decided again
// without it. Updates that free space do not share an append with others.
func decideAll[S State[S]](base *published[S], batch []*update[S]) (n int, next *published[S], records [][]byte) {
	var failed map[*update[S]]error
again:
	next = &published[S]{position: base.position, state: base.state.Clone()}
	records = records[:0]
	size := 0
	for n = 0; n < len(batch) && size < maxBatchBytes && batch[n].whenDiskFull == batch[0].whenDiskFull; n++ {
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

// decide calls the update's decide function and converts a panic into an error, so that it does
// not end the process.
func decide[S any](u *update[S], state S) (records [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			records, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return u.decide(state)
}

// finish sets the new state as the result of the updates.
func finish[S any](batch []*update[S], state S) {
	for _, u := range batch {
		u.state = state
	}
}

// failWriters ends a batch whose append failed. Updates that wrote, or were decided after such
// a write, get the error; the others were decided on the newest durable state and succeed.
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
