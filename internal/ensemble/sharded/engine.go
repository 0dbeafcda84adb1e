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

// Shard is a shard as this member has it.
type Shard interface {
	// Engine returns the shard's engine while this member is the owner, else
	// engine.ErrNotOwner.
	Engine() (engine.Engine, error)
	// Owner returns who owns the shard as far as this member knows.
	Owner() engine.Owner
	// Health returns nil, or why this member's copy cannot be used.
	Health() error
	// Checkpoint copies the shard as this member has it, or another when this one
	// has no copy.
	Checkpoint(ctx context.Context, dir string) error
	// Close gives the shard up.
	Close() error
}

// Options configures an engine. Shards and Journals are required.
type Options struct {
	Cluster string // UID, for other members
	Member  string // this one
	Shards  []Shard
	Remote  *remote.Client // nil: there are no other members
	// Journals opens the journals that all members share.
	Journals func(ctx context.Context, name string) (engine.Journal, error)
	// Wait is how long a call waits for a shard to have an owner; 0 means 5 s.
	Wait time.Duration
}

const (
	defaultWait = 5 * time.Second
	// leavingWait is it for a member that ends: others take over within less, or all
	// of them end.
	leavingWait = time.Second
	lookAgain   = 20 * time.Millisecond
)

// Engine is an engine.Engine over shards.
type Engine struct {
	opts   Options
	shards []Shard

	deadLetter atomic.Pointer[func(engine.TopicID)]
	totals     clusterTotals

	leave   sync.Once
	leaving chan struct{} // closed by Leave

	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

var _ engine.Engine = (*Engine)(nil)

// New makes the engine of a cluster; it owns the shards and closes them.
func New(opts Options) *Engine {
	if opts.Wait == 0 {
		opts.Wait = defaultWait
	}
	e := &Engine{opts: opts, shards: opts.Shards, leaving: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Leave says that the member ends: calls do not wait long for an owner any more.
func (e *Engine) Leave() { e.leave.Do(func() { close(e.leaving) }) }

// ShardOf returns the number of the shard that a topic belongs to.
func (e *Engine) ShardOf(id engine.TopicID) int { return ShardOf(id, len(e.shards)) }

// ShardOf returns the number of the shard of so many that a topic belongs to.
func ShardOf(id engine.TopicID, shards int) int { return int(uint64(id) % uint64(shards)) } //nolint:gosec // less than the number of shards

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

// place is where a call goes: what owned engines and remote shards have in common.
type place interface {
	engine.Topics
	engine.Log
	engine.Runs
	engine.Subscriptions
}

// placeOf returns where a shard is now.
func (e *Engine) placeOf(shard int) (place, error) {
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

// repeats says what has to be known of a call that failed before it is made again.
// A call of which nothing has happened always is.
type repeats int

const (
	// never is for what changes something: after an unknown outcome the caller decides.
	never repeats = iota
	// whenMoved is for Receive: leases end with the ownership, so after a change of
	// owner nobody has the messages. While the owner stays, each attempt would count
	// as a delivery, and a message could end as a dead letter that nobody has seen.
	whenMoved
	// always is for what changes nothing.
	always
)

// call makes a call at the owner of a shard. It waits while there is none, and makes
// the call again when the owner has changed, as far as the call may be repeated.
func (e *Engine) call(ctx context.Context, shard int, r repeats, do func(place) error) error {
	var late <-chan time.Time
	leaving := e.leaving
	for {
		at, err := e.placeOf(shard)
		switch {
		case err == nil:
			if err = do(at); err == nil || !e.again(err, r) {
				return e.moved(err)
			}
		case !errors.Is(err, engine.ErrNoOwner):
			return err
		}
		if late == nil {
			timer := time.NewTimer(e.opts.Wait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-time.After(lookAgain):
		case <-leaving:
			leaving = nil
			timer := time.NewTimer(min(leavingWait, e.opts.Wait))
			defer timer.Stop()
			late = timer.C
		case <-late:
			return fmt.Errorf("shard %d: %w", shard, err)
		case <-ctx.Done():
			return ctx.Err()
		case <-e.ctx.Done():
			return engine.ErrClosed
		}
	}
}

// moved says of a call that an engine did not finish because it closed that another
// member has the shard now: the cluster is open. When it is not, connections break.
func (e *Engine) moved(err error) error {
	switch closed := e.ctx.Err() != nil; {
	case !closed && errors.Is(err, engine.ErrClosed):
		return fmt.Errorf("%w (%w)", engine.ErrNotOwner, err)
	case closed && errors.Is(err, remote.ErrUnreachable):
		return fmt.Errorf("%w (%w)", engine.ErrClosed, err)
	}
	return err
}

// again says whether a call that failed may be made again.
func (e *Engine) again(err error, r repeats) bool {
	if _, refused := remote.Refused(err); refused || errors.Is(err, engine.ErrNotBegun) {
		return true
	}
	switch {
	case r == never:
		return false
	case errors.Is(err, engine.ErrNotOwner):
		return true
	case errors.Is(err, engine.ErrClosed): // as an engine is when its member is no longer the owner
		return e.ctx.Err() == nil
	}
	return r == always && errors.Is(err, remote.ErrUnreachable)
}

// Health returns nil while the shards that this member has can be used.
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

// Checkpoint copies the shards, those without a copy here from another member.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the copy: %w", err)
	}
	for i, s := range e.shards {
		if err := s.Checkpoint(ctx, filepath.Join(dir, Folder(i))); err != nil {
			return fmt.Errorf("copying shard %d: %w", i, err)
		}
	}
	return nil
}

// Folder is the name of the folder of a shard's store.
func Folder(shard int) string { return fmt.Sprintf("shard-%03d", shard) }

// Close closes the shards.
func (e *Engine) Close() error {
	e.totals.mu.Lock() // nothing new begins
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
