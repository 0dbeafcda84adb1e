package groups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// shards is how many journals the groups of a cluster are spread over. It is
// part of the format: a group is looked for in one of them only.
const shards = 16

// Options configures a coordinator.
type Options struct {
	// InitialDelay is how long the first member of a group waits for company;
	// 0 means DefaultInitialDelay.
	InitialDelay time.Duration
	// Heartbeat is how often members of the consumer protocol are told to say that
	// they live; 0 means DefaultHeartbeat.
	Heartbeat time.Duration
	// Logger gets background failures; nil means slog.Default().
	Logger *slog.Logger
	// Shared says that members of a group divide the journals among themselves: none
	// is opened before Gain.
	Shared bool
}

// Coordinator coordinates the consumer groups of one cluster.
type Coordinator struct {
	shards    [shards]atomic.Pointer[shard] // nil: another member has it
	absent    *shard                        // stands for those
	producers producerIDs
	opts      Options
	log       *slog.Logger
	bytes     atomic.Int64 // of what members of all groups say of themselves

	ctx    context.Context // the life of the coordinator, ended by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// shard is the groups of one journal.
type shard struct {
	c       *Coordinator
	machine *statemachine.Machine[*state]

	mu     sync.Mutex
	groups map[Key]*group // those with members, or in use at this moment
}

// Journals opens journals by name; an engine.Engine is one.
type Journals interface {
	Journal(ctx context.Context, name string) (engine.Journal, error)
}

// Open reads the groups of a cluster and starts to coordinate them.
func Open(ctx context.Context, journals Journals, opts Options) (*Coordinator, error) {
	if opts.InitialDelay == 0 {
		opts.InitialDelay = DefaultInitialDelay
	}
	if opts.Heartbeat == 0 {
		opts.Heartbeat = DefaultHeartbeat
	}
	c := &Coordinator{opts: opts, log: opts.Logger}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.absent = &shard{c: c}
	for i := 0; i < shards && !opts.Shared; i++ {
		s, err := c.openShard(ctx, journals, journalOf(i))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.shards[i].Store(s)
	}
	if err := c.openProducerIDs(ctx, journals); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, s := range c.held() {
		s.wake()
	}
	c.wg.Go(c.sweepLoop)
	return c, nil
}

func (c *Coordinator) openShard(ctx context.Context, journals Journals, name string) (*shard, error) {
	journal, err := journals.Journal(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("opening journal %s: %w", name, err)
	}
	machine, err := statemachine.Open(ctx, journal,
		statemachine.Options[*state]{Empty: newState, Restore: restore, Name: name, Logger: c.log})
	if err != nil {
		return nil, err
	}
	return &shard{c: c, machine: machine, groups: make(map[Key]*group)}, nil
}

// wake puts the groups that had members before a restart back to work.
func (s *shard) wake() {
	s.machine.View().groups.Scan(func(_ string, item groupItem) bool {
		if item.occupied() {
			if g, err := s.lock(item.key, false); err == nil {
				g.unlock()
			}
		}
		return true
	})
}

// Close answers everybody who waits and stops. Stored groups go on at the next
// Open.
func (c *Coordinator) Close() error {
	c.cancel()
	held := c.held()
	for _, s := range held {
		s.end()
	}
	c.wg.Wait()
	var failed error
	for _, s := range held {
		failed = errors.Join(failed, s.machine.Close())
	}
	if c.producers.machine != nil {
		failed = errors.Join(failed, c.producers.machine.Close())
	}
	return failed
}

// end answers everybody who waits for a group of the shard.
func (s *shard) end() {
	s.mu.Lock()
	all := s.groups
	s.groups = nil
	s.mu.Unlock()
	for _, g := range all {
		g.mu.Lock()
		g.closeLocked()
		g.mu.Unlock()
	}
}

// shard returns the shard of a group, or the one that stands for those that
// another member has.
func (c *Coordinator) shard(key Key) *shard {
	if s := c.shards[JournalOf(key)].Load(); s != nil {
		return s
	}
	return c.absent
}

// lock returns a group with its mutex locked; the caller must unlock it. With
// create a group that does not exist is made; else ErrNoGroup.
func (s *shard) lock(key Key, create bool) (*group, error) {
	for {
		g, err := s.find(key, create)
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		if !g.gone {
			return g, nil
		}
		g.mu.Unlock()
		s.remove(g)
	}
}

// find returns a group, made from what is stored if it is not in memory.
func (s *shard) find(key Key, create bool) (*group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil {
		return nil, ErrNotCoordinator
	}
	if s.groups == nil {
		return nil, ErrClosed
	}
	if g := s.groups[key]; g != nil {
		return g, nil
	}
	view := s.machine.View()
	item, stored := view.groups.Get(key.path())
	if !stored {
		if !create {
			return nil, ErrNoGroup
		}
		if s.c.count() >= maxGroups {
			return nil, fmt.Errorf("%w: %d", ErrTooManyGroups, maxGroups)
		}
	}
	g := newGroup(s, key)
	switch { // nobody else has it yet
	case stored && item.stored.consumers != nil:
		g.restoreConsumersLocked(item.stored, view.consumersOf(key))
	case stored:
		g.restoreLocked(item.stored)
	}
	s.groups[key] = g
	return g, nil
}

// remove takes a group out of memory that is gone.
func (s *shard) remove(g *group) {
	s.mu.Lock()
	if s.groups[g.key] == g {
		delete(s.groups, g.key)
	}
	s.mu.Unlock()
}

// count returns how many groups are stored.
func (c *Coordinator) count() int {
	n := 0
	for _, s := range c.held() {
		n += s.machine.View().groups.Len()
	}
	return n
}

// check looks at what every call has.
func (k Key) check() error {
	if k.Group == "" || len(k.Group) > maxGroupID {
		return ErrGroupID
	}
	return nil
}
