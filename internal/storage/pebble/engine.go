package pebble

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/storage/engine"
)

// Engine implements engine.Engine on an open store.
type Engine struct {
	*store
	ownsStore bool // the store is closed with the engine

	commit      committer
	eras        eraCounter
	topics      topicTable
	totals      totals
	clock       clock
	trimmer     trimmer
	deadLetters deadLetterMover
	selector    atomic.Pointer[engine.Selector]
	reclaim     reclaimer
	journal     journalTable
	splits      *splitCache

	opened   time.Time
	ops      atomic.Int64  // calls in progress
	drained  chan struct{} // signalled when ops reaches 0 while closing
	closing  chan struct{}
	closed   atomic.Bool
	resigned atomic.Bool // after Close, calls return ErrNotOwner
	closeMu  sync.Mutex
	ended    bool

	stopErr atomic.Pointer[error] // the error of calls after the engine has stopped
	stopped chan struct{}         // closed when stopErr is set
}

var _ engine.Engine = (*Engine)(nil)

// Open opens the store in dir with an engine on it. It creates the store if it does not
// exist.
func Open(dir string, opts Options) (*Engine, error) {
	s, err := openStore(dir, opts, false)
	if err != nil {
		return nil, err
	}
	e := newEngine(s, nil)
	e.ownsStore = true
	if err := e.start(); err != nil {
		e.commit.close()
		return nil, errors.Join(err, s.close())
	}
	return e, nil
}

// newEngine returns an engine on an open store. With a log, its writes go to the log
// before they go to the store.
func newEngine(s *store, log Log) *Engine {
	e := &Engine{
		store:   s,
		opened:  time.Now(),
		drained: make(chan struct{}, 1),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	if s.opts.Cache != nil {
		e.splits = s.opts.Cache.splits
	} else {
		e.splits = newSplitCache(nil)
	}
	e.commit.log = log
	return e
}

func (e *Engine) start() error {
	e.commit.start(e)
	e.store.serve(e)
	if err := errors.Join(e.checkFormat(), e.eras.start(e)); err != nil {
		return err
	}
	e.topics.start(e)
	e.journal.start(e)
	e.clock.start(e)
	e.reclaim.start(e)
	e.deadLetters.start(e)
	e.trimmer.start(e)
	return nil
}

// enter begins a call. The caller must call leave when enter returns nil.
func (e *Engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // no caller waits for the result, so do not begin
	}
	e.ops.Add(1)
	if e.closed.Load() {
		e.leave()
		return notBegun(e.closedCause())
	}
	if e.stopErr.Load() != nil {
		e.leave()
		return notBegun(e.stopCause())
	}
	if err := e.live(); err != nil {
		e.leave()
		return notBegun(err)
	}
	return nil
}

// notBegun returns the error of a call that had no effect.
func notBegun(err error) error {
	if errors.Is(err, engine.ErrNotOwner) {
		return engine.ErrNotBegun
	}
	return err
}

func (e *Engine) leave() {
	if e.ops.Add(-1) == 0 && e.closed.Load() {
		select {
		case e.drained <- struct{}{}:
		default:
		}
	}
}

// begin begins a call that uses a topic, which stays loaded. The caller must call end of the
// topic when begin returns no error.
func (e *Engine) begin(ctx context.Context, id engine.TopicID) (*topic, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	t, err := e.topics.acquire(ctx, id)
	if err != nil {
		e.leave()
		return nil, err
	}
	return t, nil
}

// end ends a call that begin has begun.
func (t *topic) end() {
	t.release()
	t.e.leave()
}

// beginPartition is begin for a call that uses one partition of the topic.
func (e *Engine) beginPartition(ctx context.Context, id engine.TopicID, index int32) (*partition, error) {
	t, err := e.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	p, err := t.partition(index)
	if err != nil {
		t.end()
		return nil, err
	}
	return p, nil
}

// beginSubscription is begin for a call that uses a subscription of the topic.
func (e *Engine) beginSubscription(ctx context.Context, id engine.TopicID, name string) (*subscription, error) {
	t, err := e.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := t.subscription(ctx, name)
	if err != nil {
		t.end()
		return nil, err
	}
	return s, nil
}

// stop ends the engine permanently: it acknowledges nothing any more, and all calls
// return the error cause.
func (e *Engine) stop(cause error) {
	if !e.stopErr.CompareAndSwap(nil, &cause) {
		return
	}
	close(e.stopped)
	e.commit.fail(cause)
}

// stopCause returns the error of calls after the engine has stopped, or nil.
func (e *Engine) stopCause() error {
	if p := e.stopErr.Load(); p != nil {
		return *p
	}
	return nil
}

// Health implements engine.Engine.
func (e *Engine) Health() error {
	if e.closed.Load() {
		return engine.ErrClosed
	}
	if err := e.fault(); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrFailed, err)
	}
	if cause := e.stopCause(); cause != nil {
		return cause
	}
	if p := e.damage.store.Load(); p != nil {
		return *p
	}
	return nil
}

// Close implements engine.Engine.
func (e *Engine) Close() error {
	e.closeMu.Lock()
	defer e.closeMu.Unlock()
	if e.ended {
		return nil
	}
	e.ended = true
	e.closed.Store(true)
	close(e.closing)
	if e.ownsStore {
		e.store.end()
	}
	for e.ops.Load() > 0 {
		<-e.drained
	}
	e.trimmer.close()
	e.deadLetters.close()
	e.clock.close()
	e.reclaim.close()
	if e.fault() == nil {
		e.commit.close()
	}
	e.store.serve(nil)
	e.splits.drop(e)
	if !e.ownsStore {
		return e.failure()
	}
	if err := e.store.close(); err != nil {
		return fmt.Errorf("closing %s: %w", e.dir, err)
	}
	return nil
}
