package sharded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/ensemble/remote"
	"freshet/internal/storage/engine"
)

// Shard is this member's view of a shard.
type Shard interface {
	// Engine returns the shard's engine while this member is the owner, else
	// engine.ErrNotOwner.
	Engine() (engine.Engine, error)
	// Owner returns the owner of the shard as far as this member knows.
	Owner() engine.Owner
	// Health returns nil, or why this member's copy cannot be used.
	Health() error
	// Checkpoint copies the shard from this member's copy, or from another member's when
	// this one has none.
	Checkpoint(ctx context.Context, dir string) error
	// Close gives up the shard.
	Close() error
}

// Journals are the journals that all members share.
type Journals interface {
	// Journal opens a journal.
	Journal(ctx context.Context, name string) (engine.Journal, error)
}

// Options configures an engine. Shards and Journals are required.
type Options struct {
	Cluster  string // UID of the cluster, for requests to other members
	Member   string // name of this member
	Shards   []Shard
	Remote   *remote.Client // nil when there are no other members
	Journals Journals
	// OwnerTimeout is how long a call waits for a shard to have an owner; 0 means 5 s.
	OwnerTimeout time.Duration
}

const (
	defaultOwnerTimeout = 5 * time.Second
	// shutdownOwnerTimeout replaces Options.OwnerTimeout during shutdown. Other members take over in less
	// time, unless all members shut down.
	shutdownOwnerTimeout = time.Second
	retryInterval        = 20 * time.Millisecond
)

// Engine is an engine.Engine over shards.
type Engine struct {
	opts   Options
	shards []Shard

	deadLetter atomic.Pointer[func(engine.TopicID)]
	selector   atomic.Pointer[engine.Selector]
	totals     clusterTotals

	leave   sync.Once
	leaving chan struct{} // closed by Leave

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

var _ engine.Engine = (*Engine)(nil)

// New creates the engine of a cluster. It owns the shards and closes them.
func New(opts Options) *Engine {
	if opts.OwnerTimeout == 0 {
		opts.OwnerTimeout = defaultOwnerTimeout
	}
	e := &Engine{opts: opts, shards: opts.Shards, leaving: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Leave announces the shutdown of the member: calls wait at most shutdownOwnerTimeout for an owner.
func (e *Engine) Leave() { e.leave.Do(func() { close(e.leaving) }) }

// ShardOf returns the number of the shard that contains a topic.
func (e *Engine) ShardOf(id engine.TopicID) int { return ShardOf(id, len(e.shards)) }

// ShardOf returns the number of the shard that contains a topic, given the number of shards.
func ShardOf(id engine.TopicID, shards int) int {
	return int(uint64(id) % uint64(shards)) //nolint:gosec // less than the number of shards
}

// OwnerOf returns the owner of a topic's shard as far as this member knows.
func (e *Engine) OwnerOf(id engine.TopicID) engine.Owner { return e.shards[e.ShardOf(id)].Owner() }

// Owned returns the engine of a shard while this member owns it, and its owner.
func (e *Engine) Owned(shard int) (engine.Engine, engine.Owner, error) {
	if shard < 0 || shard >= len(e.shards) {
		return nil, engine.Owner{},
			fmt.Errorf("%w: cluster %s has no shard %d", engine.ErrInvalid, e.opts.Cluster, shard)
	}
	owned, err := e.shards[shard].Engine()
	return owned, e.shards[shard].Owner(), err
}

// target is the target of a call: the methods that owned engines and remote shards share.
type target interface {
	engine.Topics
	engine.Log
	engine.Batches
	engine.Subscriptions
}

// targetOf returns the current target for calls to a shard.
func (e *Engine) targetOf(shard int) (target, error) {
	owned, err := e.shards[shard].Engine()
	if err == nil {
		return owned, nil
	}
	if !errors.Is(err, engine.ErrNotOwner) && !errors.Is(err, engine.ErrNoOwner) {
		return nil, err
	}
	owner := e.shards[shard].Owner()
	if owner.Member == "" || owner.Member == e.opts.Member || e.opts.Remote == nil {
		return nil, engine.ErrNoOwner
	}
	return e.opts.Remote.Shard(e.opts.Cluster, shard, owner), nil
}

// retryPolicy is a retry policy for failed calls. A call of which nothing has happened is always
// retried.
type retryPolicy int

const (
	// retryNever is for calls that change something: after an unknown outcome the caller decides.
	retryNever retryPolicy = iota
	// retryWhenMoved is for Receive. Leases end with the ownership, so after a change of owner
	// no consumer has the messages. While the owner stays, each retry would count as a
	// delivery, and a message could become a dead letter that no consumer has received.
	retryWhenMoved
	// retryAlways is for calls that change nothing.
	retryAlways
)

// call calls do with the owner of a shard. It waits while there is none, and retries after a
// change of owner if the policy r allows it.
func (e *Engine) call(ctx context.Context, shard int, r retryPolicy, do func(target) error) error {
	var timeout <-chan time.Time
	leaving := e.leaving
	for {
		at, err := e.targetOf(shard)
		switch {
		case err == nil:
			if err = do(at); err == nil || !e.mayRetry(err, r) {
				return e.closedError(err)
			}
		case !errors.Is(err, engine.ErrNoOwner):
			return err
		}
		if timeout == nil {
			timer := time.NewTimer(e.opts.OwnerTimeout)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-time.After(retryInterval):
		case <-leaving:
			leaving = nil
			timer := time.NewTimer(min(shutdownOwnerTimeout, e.opts.OwnerTimeout))
			defer timer.Stop()
			timeout = timer.C
		case <-timeout:
			return fmt.Errorf("shard %d: %w", shard, err)
		case <-ctx.Done():
			return ctx.Err()
		case <-e.ctx.Done():
			return engine.ErrClosed
		}
	}
}

// on calls do with the owner of a topic's shard, as call does, and returns the result of the
// last attempt.
func on[T any](ctx context.Context, e *Engine, id engine.TopicID, r retryPolicy,
	do func(target) (T, error),
) (result T, err error) {
	err = e.call(ctx, e.ShardOf(id), r, func(at target) (err error) {
		result, err = do(at)
		return err
	})
	return result, err
}

// once calls do with the owner of a topic's shard. It repeats only calls of which nothing has
// happened.
func (e *Engine) once(ctx context.Context, id engine.TopicID, do func(target) error) error {
	return e.call(ctx, e.ShardOf(id), retryNever, do)
}

// closedError translates the error of an interrupted call. While the cluster is open, a closed
// engine means that another member owns the shard. While the cluster closes, a broken
// connection means that the cluster is closed.
func (e *Engine) closedError(err error) error {
	switch closed := e.ctx.Err() != nil; {
	case !closed && errors.Is(err, engine.ErrClosed):
		return fmt.Errorf("%w (%w)", engine.ErrNotOwner, err)
	case closed && errors.Is(err, remote.ErrUnreachable):
		return fmt.Errorf("%w (%w)", engine.ErrClosed, err)
	}
	return err
}

// mayRetry reports whether a failed call may be retried.
func (e *Engine) mayRetry(err error, r retryPolicy) bool {
	if _, refused := remote.Refused(err); refused || errors.Is(err, engine.ErrNotBegun) {
		return true
	}
	switch {
	case r == retryNever:
		return false
	case errors.Is(err, engine.ErrNotOwner):
		return true
	case errors.Is(err, engine.ErrClosed): // an engine is closed when its member loses the ownership
		return e.ctx.Err() == nil
	}
	return r == retryAlways && errors.Is(err, remote.ErrUnreachable)
}

// Health returns nil while the shards on this member are usable.
func (e *Engine) Health() error {
	if e.ctx.Err() != nil {
		return engine.ErrClosed
	}
	var problems []error
	for i, s := range e.shards {
		err := s.Health()
		if owned, none := s.Engine(); err == nil && none == nil {
			err = owned.Health()
		}
		if err != nil && !errors.Is(err, engine.ErrNotOwner) {
			problems = append(problems, fmt.Errorf("shard %d: %w", i, err))
		}
	}
	return errors.Join(problems...)
}

// Checkpoint copies all shards; those without a copy on this member from another member.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("creating the checkpoint directory: %w", err)
	}
	for i, s := range e.shards {
		if err := s.Checkpoint(ctx, filepath.Join(dir, ShardDir(i))); err != nil {
			return fmt.Errorf("copying shard %d: %w", i, err)
		}
	}
	return nil
}

// ShardDir returns the name of the directory of a shard's store.
func ShardDir(shard int) string { return fmt.Sprintf("shard-%03d", shard) }

// Close closes the shards.
func (e *Engine) Close() error {
	e.totals.mu.Lock() // no new refresh starts
	e.cancel()
	e.totals.mu.Unlock()
	e.work.Wait()
	problems := make([]error, len(e.shards))
	var closing sync.WaitGroup
	for i, s := range e.shards {
		closing.Go(func() { problems[i] = s.Close() })
	}
	closing.Wait()
	return errors.Join(problems...)
}
