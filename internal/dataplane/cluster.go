package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane/provision"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/registry/schemas"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Cluster is a running cluster.
type Cluster struct {
	provision.Spec
	Scope     access.Scope
	Audiences []string
	Engine    engine.Engine
	Broker    *messaging.Broker
	Registry  *schemas.Registry
	groups    *lazyGroups
	Quota     *quota.Cluster // nil: no limits
	// shards are the shards of the cluster; none on a single server.
	shards   []*lazyShard
	owners   owners
	journals clusterJournals
}

// owners returns who owns the shards of a cluster: sharded.Engine on a member, soleOwner on a
// single server.
type owners interface {
	// OwnerOf returns the member that owns a topic's shard.
	OwnerOf(id engine.TopicID) engine.Owner
	// Owned returns the engine of a shard that this member owns.
	Owned(shard int) (engine.Engine, engine.Owner, error)
	// ShardAcquired records that this member has become the owner of a shard.
	ShardAcquired(owned engine.Engine)
	// Leave makes calls that wait for an owner return, because this member is stopping.
	Leave()
}

// soleOwner implements owners for a single server: its clusters have no shards.
type soleOwner struct{}

// OwnerOf implements owners.
func (soleOwner) OwnerOf(engine.TopicID) engine.Owner { return engine.Owner{} }

// Owned implements owners.
func (soleOwner) Owned(int) (engine.Engine, engine.Owner, error) {
	return nil, engine.Owner{}, engine.ErrNotOwner
}

// ShardAcquired implements owners.
func (soleOwner) ShardAcquired(engine.Engine) {}

// Leave implements owners.
func (soleOwner) Leave() {}

const registryJournal = "schemas"

// openSingleLocked opens a cluster on a single server, bottom up.
func (p *Plane) openSingleLocked(ctx context.Context, spec provision.Spec,
	report func(provision.Part),
) (*Cluster, error) {
	log := p.log.With(slog.String("cluster", spec.Organization+"/"+spec.Name))
	store, err := pebble.Open(p.dir(spec.UID),
		pebble.Options{
			Splitter: messaging.Splitter{}, Cache: p.cache, Logger: log, MinFreeBytes: p.opts.DiskReserve,
			MustExist: spec.Existing && !p.mayBeMissing(spec.UID),
		})
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if p.opts.Restored != nil && p.opts.Restored.IsFirstStart(spec.UID) {
		if err := groups.SkipProducerIDs(ctx, store, log); err != nil {
			return nil, errors.Join(fmt.Errorf("skipping producer ids: %w", err), store.Close())
		}
	}
	report(provision.Storage)
	limits := p.opts.Quotas.Organization(spec.Organization).Open(spec.Name, limitsOf(spec))
	limits.SetMemory(spec.MemoryBytes)
	c := &Cluster{
		Engine: store, Quota: limits, groups: &lazyGroups{open: groups.Open}, owners: soleOwner{},
		journals: storedJournals{},
	}
	if err := c.start(ctx, p, log, report); err != nil {
		limits.Close()
		return nil, errors.Join(err, store.Close())
	}
	return c.with(spec), nil
}

// limitsOf returns the limits of a cluster alone. If its disks and quota.storedBytes both limit the stored
// bytes, the smaller limit applies.
func limitsOf(spec provision.Spec) quota.Limits {
	limits := quota.ClusterLimits(spec.Custom)
	if own := limits[quota.StoredBytes]; spec.StoredBytes > 0 && (own == 0 || spec.StoredBytes < own) {
		limits[quota.StoredBytes] = spec.StoredBytes
	}
	return limits
}

// start opens the registry and the broker on the engine.
func (c *Cluster) start(ctx context.Context, p *Plane, log *slog.Logger, report func(provision.Part)) error {
	journal, err := c.Engine.Journal(ctx, registryJournal)
	if err != nil {
		return fmt.Errorf("opening the registry's journal: %w", err)
	}
	if c.Registry, err = schemas.Open(ctx, journal,
		schemas.Options{Logger: log, Quota: c.Quota, Pool: p.pool}); err != nil {
		return fmt.Errorf("opening the schema registry: %w", err)
	}
	report(provision.Metadata)
	c.Broker, err = messaging.Open(ctx, c.Engine,
		messaging.Options{
			Limits: p.opts.Limits, Schemas: schemaIDs{c.Registry}, Quota: c.Quota, Pool: p.pool, Logger: log,
			Shards: len(c.shards), Unpacking: p.opts.Unpacking,
		})
	if err != nil {
		return errors.Join(fmt.Errorf("opening the broker: %w", err), c.Registry.Close())
	}
	c.Quota.SetCounter(c.used)
	report(provision.Broker)
	return nil
}

// used returns the cluster's usage of a resource, for its quotas.
func (c *Cluster) used(r quota.Resource) int64 {
	switch r {
	case quota.Topics:
		partitions, _ := c.Broker.Statistics.QuotaUsage()
		return partitions
	case quota.Subscriptions:
		return c.Engine.Totals().Subscriptions
	case quota.Subjects:
		subjects, _ := c.Registry.QuotaUsage()
		return subjects
	case quota.SchemaBytes:
		_, ofTopics := c.Broker.Statistics.QuotaUsage()
		_, registered := c.Registry.QuotaUsage()
		return ofTopics + registered
	case quota.StoredBytes:
		return c.Engine.Totals().Stored
	}
	return 0
}

// mayBeMissing reports whether the missing store of a cluster that has run before may be created.
func (p *Plane) mayBeMissing(uid string) bool {
	return p.opts.Restored != nil && p.opts.Restored.MayHaveNoStore(uid)
}

// with returns the same running cluster with another spec.
func (c *Cluster) with(spec provision.Spec) *Cluster {
	return &Cluster{
		Spec: spec, Scope: scopeOf(spec), Audiences: audiencesOf(spec),
		Engine: c.Engine, Broker: c.Broker, Registry: c.Registry, Quota: c.Quota, groups: c.groups,
		shards: c.shards, owners: c.owners, journals: c.journals,
	}
}

// Health returns nil while the broker and the registry are healthy.
func (c *Cluster) Health() error {
	return errors.Join(c.Broker.Health(), c.Registry.Health())
}

// LostJournals returns an engine.ErrJournalLost while a journal of the open cluster has lost records and cannot be
// rebuilt. The cluster serves what it knows meanwhile, so its Health does not include it.
func (c *Cluster) LostJournals() error { return c.journals.Lost() }

// close closes a cluster, top down: it makes waiting consumers return, then closes the state
// machines, then the store.
func (c *Cluster) close() error {
	c.Broker.Drain()
	c.Quota.Close()
	err := errors.Join(c.groups.close(), c.Broker.Close(), c.Registry.Close(), c.Engine.Close())
	c.journals.Close()
	return err
}
