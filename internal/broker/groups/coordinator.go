package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// shards is the number of journals that the groups of a cluster are spread over. It is part of the
// storage format: a group is looked up in one journal only.
const shards = 16

// Options configures a coordinator.
type Options struct {
	// InitialDelay is how long the first rebalance of a group waits for more members; 0 means
	// DefaultInitialDelay.
	InitialDelay time.Duration
	// HeartbeatInterval is the heartbeat interval for members with the consumer protocol; 0 means
	// DefaultHeartbeatInterval.
	HeartbeatInterval time.Duration
	// Quota counts the bytes of groups, members and offsets; nil means no limits.
	Quota *quota.Cluster
	// Logger logs failures of background work; nil means slog.Default().
	Logger *slog.Logger
}

// Coordinator coordinates the consumer groups of one cluster.
type Coordinator struct {
	shards      [shards]atomic.Pointer[shard] // nil while another member owns the journal
	absentShard *shard                        // shard without a journal, used in place of nil
	producers   producerIDs
	shares      shares
	opts        Options
	log         *slog.Logger
	memberBytes atomic.Int64 // memory that the metadata of all members takes

	ctx    context.Context // context of background work, cancelled by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// shard is the groups of one journal.
type shard struct {
	c       *Coordinator
	machine *statemachine.Machine[*state]

	mu     sync.Mutex
	groups map[Key]*group // groups with members, or in use by a call
}

// Journals opens journals by name. An engine.Engine implements it.
type Journals interface {
	Journal(ctx context.Context, name string) (engine.Journal, error)
}

// Open loads the groups of a cluster and starts to coordinate them. The caller is the only
// coordinator of the cluster.
func Open(ctx context.Context, journals Journals, opts Options) (*Coordinator, error) {
	c := newCoordinator(ctx, opts)
	for i := range shards {
		s, err := c.openShard(ctx, journals, journalName(i))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.shards[i].Store(s)
	}
	return c.start(ctx, journals)
}

// OpenMember starts to coordinate groups on a member of an ensemble. The members divide the journals
// of the groups among themselves: AcquireJournal loads the groups of a journal.
func OpenMember(ctx context.Context, journals Journals, opts Options) (*Coordinator, error) {
	return newCoordinator(ctx, opts).start(ctx, journals)
}

// newCoordinator returns a coordinator without groups.
func newCoordinator(ctx context.Context, opts Options) *Coordinator {
	opts.InitialDelay = cmp.Or(opts.InitialDelay, DefaultInitialDelay)
	opts.HeartbeatInterval = cmp.Or(opts.HeartbeatInterval, DefaultHeartbeatInterval)
	c := &Coordinator{opts: opts, log: opts.Logger}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.absentShard = &shard{c: c}
	c.shares = shares{c: c, groups: make(map[Key]*shareGroup)}
	opts.Quota.AddStateCounter(c)
	return c
}

// start opens the producer ids, which the members of an ensemble share, and starts the background
// work. It closes the coordinator on an error.
func (c *Coordinator) start(ctx context.Context, journals Journals) (*Coordinator, error) {
	if err := c.openProducerIDs(ctx, journals); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, s := range c.ownedShards() {
		s.resumeGroups()
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
		statemachine.Options[*state]{Empty: newState(), Name: name, Logger: c.log})
	if err != nil {
		return nil, err
	}
	return &shard{c: c, machine: machine, groups: make(map[Key]*group)}, nil
}

// resumeGroups loads the groups that had members before a restart and starts their timers.
func (s *shard) resumeGroups() {
	s.machine.View().groups.Scan(func(_ string, item groupItem) bool {
		if item.occupied() {
			if g, err := s.lock(item.key, false); err == nil {
				g.unlock()
			}
		}
		return true
	})
}

// Close ends all waiting calls with ErrClosed and stops the coordinator. Stored groups continue at
// the next Open.
func (c *Coordinator) Close() error {
	c.cancel()
	c.shares.close()
	held := c.ownedShards()
	for _, s := range held {
		s.closeGroups()
	}
	c.wg.Wait()
	c.opts.Quota.RemoveStateCounter(c)
	var failed error
	for _, s := range held {
		failed = errors.Join(failed, s.machine.Close())
	}
	return errors.Join(failed, c.producers.close())
}

// closeGroups ends all calls that wait for a group of the shard, with ErrClosed.
func (s *shard) closeGroups() {
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

// shard returns the shard of a group, or absentShard when another member owns it.
func (c *Coordinator) shard(key Key) *shard {
	if s := c.shards[JournalOf(key)].Load(); s != nil {
		return s
	}
	return c.absentShard
}

// lock returns a group with its mutex locked; the caller must call unlock. Without create it
// returns ErrNoGroup for a group that does not exist.
func (s *shard) lock(key Key, create bool) (*group, error) {
	for {
		g, err := s.findGroup(key, create)
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		if !g.removed {
			return g, nil
		}
		g.mu.Unlock()
		s.remove(g)
	}
}

// findGroup returns a group, and loads it if it is only stored.
func (s *shard) findGroup(key Key, create bool) (*group, error) {
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
		if s.c.countGroups() >= maxGroups {
			return nil, fmt.Errorf("%w: %d", ErrTooManyGroups, maxGroups)
		}
	}
	g := newGroup(s, key)
	switch { // the group is not published, so its mutex is not needed
	case stored && item.stored.consumers != nil:
		g.restoreConsumersLocked(item.stored, view.consumersOf(key))
	case stored:
		g.restoreLocked(item.stored)
	}
	s.groups[key] = g
	return g, nil
}

// remove removes a group from memory.
func (s *shard) remove(g *group) {
	s.mu.Lock()
	if s.groups[g.key] == g {
		delete(s.groups, g.key)
	}
	s.mu.Unlock()
}

// countGroups returns the number of stored groups.
func (c *Coordinator) countGroups() int {
	n := 0
	for _, s := range c.ownedShards() {
		n += s.machine.View().groups.Len()
	}
	return n
}

// validate validates the group id.
func (k Key) validate() error {
	if k.Group == "" || len(k.Group) > maxGroupID {
		return ErrGroupID
	}
	return nil
}
