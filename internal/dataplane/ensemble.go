package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/remote"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Ensemble is a plane's view of the ensemble.
type Ensemble interface {
	// Self returns the name of this member.
	Self() string
	// Members returns the number of members of the ensemble.
	Members() int
	// Remote returns the client for engines on other members.
	Remote() *remote.Client
	// Shards returns the number of shards of a cluster: the number stored when the cluster
	// was created, else wanted, which is stored now.
	Shards(ctx context.Context, uid string, wanted int) (int, error)
	// OpenShard opens a shard of a cluster on this member, which may become its owner at any
	// time.
	OpenShard(ctx context.Context, o ShardOptions) (EnsembleShard, error)
	// Journals opens the journals of a cluster that all members share.
	Journals(ctx context.Context, uid string) (Journals, error)
}

// Journals opens journals by name.
type Journals interface {
	Journal(ctx context.Context, name string) (engine.Journal, error)
	// Names returns the existing journals.
	Names(ctx context.Context) ([]string, error)
	// Lost returns an engine.ErrJournalLost while an open journal has lost records and cannot be rebuilt.
	Lost() error
	Close()
}

// Ownership is notified when this member's ownership of a shard changes. Both methods must
// return quickly.
type Ownership interface {
	// Acquired is called with the engine when this member has become the owner.
	Acquired(owned engine.Engine)
	// Lost is called when this member is no longer the owner.
	Lost()
}

// ShardOptions configures a shard.
type ShardOptions struct {
	Cluster   string // UID
	Number    int
	Dir       string
	Copies    int // number of members that should have a copy
	Store     pebble.Options
	Ownership Ownership
}

// EnsembleShard is a shard of a cluster on this member.
type EnsembleShard interface {
	sharded.Shard
	// HandOver gives up the ownership, so that another member can take over immediately.
	HandOver(ctx context.Context) error
	// SetCopies sets the number of members that should have a copy.
	SetCopies(n int)
	// Status describes the shard.
	Status() provision.Shard
}

const (
	ownerPollInterval = 50 * time.Millisecond
	ownersTimeout     = 30 * time.Second // for all shards of a cluster to have owners
	minAdoptBackoff   = 100 * time.Millisecond
	maxAdoptBackoff   = 5 * time.Second
)

// lazyShard is a shard that is opened later: the broker, which is notified of ownership, is
// opened before the shards.
type lazyShard struct {
	cluster *Cluster
	number  int
	log     *slog.Logger
	shard   atomic.Pointer[openShard]

	mu     sync.Mutex // protects cancel; a leaf lock
	cancel context.CancelFunc
	work   sync.WaitGroup
}

type openShard struct{ EnsembleShard }

// Engine implements sharded.Shard.
func (s *lazyShard) Engine() (engine.Engine, error) {
	if shard := s.shard.Load(); shard != nil {
		return shard.Engine()
	}
	return nil, engine.ErrNotOwner
}

// Owner implements sharded.Shard.
func (s *lazyShard) Owner() engine.Owner {
	if shard := s.shard.Load(); shard != nil {
		return shard.Owner()
	}
	return engine.Owner{}
}

// Health implements sharded.Shard.
func (s *lazyShard) Health() error {
	if shard := s.shard.Load(); shard != nil {
		return shard.Health()
	}
	return nil
}

// Checkpoint implements sharded.Shard.
func (s *lazyShard) Checkpoint(ctx context.Context, dir string) error {
	if shard := s.shard.Load(); shard != nil {
		return shard.Checkpoint(ctx, dir)
	}
	return engine.ErrNotOpen
}

// Close implements sharded.Shard.
func (s *lazyShard) Close() error {
	shard := s.shard.Load()
	if shard == nil {
		return nil // the broker is not open either
	}
	s.Lost()
	return shard.Close()
}

// Acquired implements Ownership.
func (s *lazyShard) Acquired(owned engine.Engine) {
	c := s.cluster
	c.owners.ShardAcquired(owned)
	c.Broker.ReleaseShard(s.number) // before the first call reaches the new engine
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	if s.cancel != nil {
		s.cancel()
	}
	s.cancel = cancel
	s.work.Go(func() { s.adopt(ctx, owned) })
	s.mu.Unlock()
}

// Lost implements Ownership.
func (s *lazyShard) Lost() {
	s.mu.Lock()
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	s.mu.Unlock()
	s.work.Wait()
	c := s.cluster
	c.Broker.ReleaseShard(s.number)
	if err := c.groups.releaseShard(s.number, len(c.shards)); err != nil {
		s.log.Warn("closing the consumer groups of a shard that this member gave up failed",
			slog.Int("shard", s.number), slog.Any("error", err))
	}
}

// adopt reconciles the shard with the catalogue and the consumer groups, and retries until
// it succeeds. Calls do not wait for it: a missing topic is created on first use.
func (s *lazyShard) adopt(ctx context.Context, owned engine.Engine) {
	c := s.cluster
	for backoff := (retry.Backoff{Min: minAdoptBackoff, Max: maxAdoptBackoff}); ; {
		err := errors.Join(c.groups.acquireShard(ctx, owned, s.number, len(c.shards)),
			c.Broker.AcquireShard(ctx, s.number, owned))
		if err == nil || ctx.Err() != nil {
			return
		}
		delay := backoff.Next()
		s.log.Warn("reconciling an owned shard with the catalogue failed; retrying",
			slog.Int("shard", s.number), slog.Any("error", err), slog.Duration("delay", delay))
		if retry.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// Open opens a cluster on this member, or updates an open one. Unlike Provision it does not
// wait until all shards have owners.
func (p *Plane) Open(ctx context.Context, spec provision.Spec) error {
	return p.provisionLocal(ctx, spec, func(provision.Part) {})
}

// OpenMember creates the plane of a member of an ensemble, like Open.
func OpenMember(opts Options, g Ensemble) (*Plane, error) {
	p, err := newPlane(opts)
	if err != nil {
		return nil, err
	}
	p.notOpen = engine.ErrOpening
	p.open = func(ctx context.Context, spec provision.Spec, report func(provision.Part)) (*Cluster, error) {
		return p.openShardedLocked(ctx, g, spec, report)
	}
	return p, nil
}

// openShardedLocked opens a cluster on this member of an ensemble, bottom up.
func (p *Plane) openShardedLocked(ctx context.Context, g Ensemble, spec provision.Spec,
	report func(provision.Part),
) (*Cluster, error) {
	log := p.log.With(slog.String("cluster", spec.Organization+"/"+spec.Name))
	wanted, err := WantedShards(spec.Custom, g.Members())
	if err != nil {
		return nil, err
	}
	n, err := g.Shards(ctx, spec.UID, wanted)
	if err != nil {
		return nil, fmt.Errorf("reading the number of shards: %w", err)
	}
	journals, err := g.Journals(ctx, spec.UID)
	if err != nil {
		return nil, fmt.Errorf("opening the cluster's journals: %w", err)
	}
	c := &Cluster{
		Quota: p.opts.Quotas.Organization(spec.Organization).Open(spec.Name,
			limitsOf(spec)),
		groups: &lazyGroups{open: groups.OpenMember}, journals: memberJournals{journals},
	}
	c.Quota.SetMemory(spec.MemoryBytes)
	opts := sharded.Options{Cluster: spec.UID, Member: g.Self(), Remote: g.Remote(), Journals: journals}
	for i := range n {
		s := &lazyShard{cluster: c, number: i, log: log}
		c.shards = append(c.shards, s)
		opts.Shards = append(opts.Shards, s)
	}
	joined := sharded.New(opts)
	c.Engine, c.owners = joined, joined
	if err := c.start(ctx, p, log, report); err != nil {
		c.Quota.Close()
		err = errors.Join(err, c.Engine.Close())
		journals.Close()
		return nil, err
	}
	if err := p.openShardsLocked(ctx, g, c, spec, log); err != nil {
		return nil, errors.Join(err, c.close())
	}
	report(provision.Storage)
	return c.with(spec), nil
}

func (p *Plane) openShardsLocked(ctx context.Context, g Ensemble, c *Cluster, spec provision.Spec,
	log *slog.Logger,
) error {
	for i, s := range c.shards {
		shard, err := g.OpenShard(ctx, ShardOptions{
			Cluster: spec.UID, Number: i, Copies: spec.Copies,
			Dir: filepath.Join(p.dir(spec.UID), sharded.ShardDir(i)),
			Store: pebble.Options{
				Splitter: messaging.Splitter{}, Cache: p.cache, Logger: log, MinFreeBytes: p.opts.DiskReserve,
				DeadLetters: c.Engine, Siblings: len(c.shards),
			},
			Ownership: s,
		})
		if err != nil {
			return fmt.Errorf("opening shard %d: %w", i, err)
		}
		s.shard.Store(&openShard{shard})
	}
	return nil
}

// setCopies sets the number of members that should have a copy of each shard.
func (c *Cluster) setCopies(n int) {
	for _, s := range c.shards {
		if shard := s.shard.Load(); shard != nil {
			shard.SetCopies(n)
		}
	}
}

// WantedShards returns the number of shards of a new cluster, given its spec.config.custom.
func WantedShards(custom map[string]string, members int) (int, error) {
	value, ok := custom[provision.CustomShards]
	if !ok {
		return 2 * members, nil
	}
	n, err := provision.ParseShards(value)
	if err != nil {
		return 0, errs.Newf(errs.Invalid, "spec.config.custom[shards] is %q, %w", value, err)
	}
	return n, nil
}

// awaitOwners returns nil once every shard of a cluster has an owner.
func (c *Cluster) awaitOwners(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	for {
		var without []string
		for i, s := range c.shards {
			if s.Owner().Member == "" {
				without = append(without, strconv.Itoa(i))
			}
		}
		if len(without) == 0 {
			return nil
		}
		if retry.Sleep(ctx, ownerPollInterval) != nil {
			return errs.Newf(errs.Unavailable, "%w: shards %s", engine.ErrNoOwner, strings.Join(without, ", "))
		}
	}
}

// Shards describes the shards of a cluster; nil when it is not open or has no shards.
func (p *Plane) Shards(uid string) []provision.Shard {
	c, ok := p.running.Load().byUID[uid]
	if !ok {
		return nil
	}
	var all []provision.Shard
	for _, s := range c.shards {
		if shard := s.shard.Load(); shard != nil {
			all = append(all, shard.Status())
		}
	}
	return all
}

// HandOver hands over the ownership of all shards to other members.
func (p *Plane) HandOver(ctx context.Context) {
	var all sync.WaitGroup
	for _, c := range p.running.Load().byUID {
		c.owners.Leave()
		for i, s := range c.shards {
			shard := s.shard.Load()
			if shard == nil {
				continue
			}
			all.Go(func() {
				if err := shard.HandOver(ctx); err != nil {
					s.log.Warn("handing over a shard failed; another member takes over when this lease ends",
						slog.Int("shard", i), slog.Any("error", err))
				}
			})
		}
	}
	all.Wait()
}

// Owned implements remote.Shards.
func (p *Plane) Owned(uid string, shard int) (engine.Engine, engine.Owner, error) {
	c, ok := p.running.Load().byUID[uid]
	if !ok {
		return nil, engine.Owner{}, engine.ErrNotOwner // not open on this member, or not yet
	}
	owned, owner, err := c.owners.Owned(shard)
	if err != nil {
		return nil, owner, err
	}
	return &catalogueEngine{Engine: owned, broker: c.Broker}, owner, nil
}

// catalogueEngine is an engine for calls of other members. This member's own broker configures the
// topics, because it knows the newest policies; the caller's configuration is ignored.
type catalogueEngine struct {
	engine.Engine
	broker *messaging.Broker
}

// CreateTopic implements engine.Topics.
func (t *catalogueEngine) CreateTopic(ctx context.Context, id engine.TopicID, _ engine.TopicConfig) error {
	return t.broker.ConfigureOwnedTopic(ctx, t.Engine, id)
}

// ConfigureTopic implements engine.Topics.
func (t *catalogueEngine) ConfigureTopic(ctx context.Context, id engine.TopicID, _ engine.TopicConfig) error {
	return t.broker.ConfigureOwnedTopic(ctx, t.Engine, id)
}

// CoordinatorOf returns the member that coordinates a consumer group; the zero value on a
// single server.
func (c *Cluster) CoordinatorOf(group groups.Key) engine.Owner {
	if len(c.shards) == 0 {
		return engine.Owner{}
	}
	return c.shards[groups.JournalOf(group)%len(c.shards)].Owner()
}

// coordinatorsTimeout is how long Coordinators waits for shards without an owner.
const coordinatorsTimeout = 5 * time.Second

// Coordinators returns every member that coordinates consumer groups, once; none on a single
// server. It waits up to coordinatorsTimeout for shards without an owner.
func (c *Cluster) Coordinators(ctx context.Context) ([]engine.Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, coordinatorsTimeout)
	defer cancel()
	if err := c.awaitOwners(ctx); err != nil {
		return nil, err
	}
	var owners []engine.Owner
	for _, s := range c.shards[:min(len(c.shards), groups.JournalCount)] {
		owner := s.Owner()
		if owner.Member == "" {
			return nil, errs.Newf(errs.Unavailable, "%w: shard %d", engine.ErrNoOwner, s.number)
		}
		if !slices.ContainsFunc(owners, func(o engine.Owner) bool { return o.Member == owner.Member }) {
			owners = append(owners, owner)
		}
	}
	return owners, nil
}

// OwnerOf returns the owner of a topic's shard; the zero value on a single server.
func (c *Cluster) OwnerOf(id engine.TopicID) engine.Owner { return c.owners.OwnerOf(id) }
