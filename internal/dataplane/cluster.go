package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"freshet/internal/access"
	"freshet/internal/dataplane/provision"
	"freshet/internal/engine"
	"freshet/internal/engine/pebble"
	"freshet/internal/messaging"
	"freshet/internal/schemas"
)

// Cluster is a running cluster.
type Cluster struct {
	provision.Spec
	Scope     access.Scope
	Audiences []string
	Engine    engine.Engine
	Broker    *messaging.Broker
	Registry  *schemas.Registry
}

const registryJournal = "schemas"

// open starts a cluster from its folder, bottom up, and reports each part that
// has come up.
func (p *Plane) open(ctx context.Context, spec provision.Spec, report func(provision.Part)) (*Cluster, error) {
	log := p.log.With(slog.String("cluster", spec.Organization+"/"+spec.Name))
	store, err := pebble.Open(p.folder(spec.UID), pebble.Options{Cache: p.cache, Logger: log, MinFreeBytes: p.opts.DiskReserve})
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	report(provision.Storage)
	journal, err := store.Journal(ctx, registryJournal)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the registry's journal: %w", err), store.Close())
	}
	registry, err := schemas.Open(ctx, journal, schemas.Options{Logger: log, Pool: p.pool})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the schema registry: %w", err), store.Close())
	}
	report(provision.Metadata)
	broker, err := messaging.Open(ctx, store, messaging.Options{Limits: p.opts.Limits, Schemas: schemaIDs{registry}, Pool: p.pool, Logger: log})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the broker: %w", err), registry.Close(), store.Close())
	}
	report(provision.Broker)
	c := &Cluster{Engine: store, Broker: broker, Registry: registry}
	return c.with(spec), nil
}

// with is the same running cluster under another spec.
func (c *Cluster) with(spec provision.Spec) *Cluster {
	return &Cluster{
		Spec: spec, Scope: scopeOf(spec), Audiences: audiencesOf(spec),
		Engine: c.Engine, Broker: c.Broker, Registry: c.Registry,
	}
}

// Health returns nil while the cluster keeps its promises.
func (c *Cluster) Health() error {
	return errors.Join(c.Broker.Health(), c.Registry.Health())
}

// close stops a cluster, top down: waiting consumers get their answer, then the
// state machines end, then the store.
func (c *Cluster) close() error {
	c.Broker.Drain()
	return errors.Join(c.Broker.Close(), c.Registry.Close(), c.Engine.Close())
}
