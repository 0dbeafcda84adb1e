package schemas

import (
	"context"
	"log/slog"
	"time"

	"freshet/internal/base/lru"
	"freshet/internal/base/workpool"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// Options configures a registry.
type Options struct {
	// FixedMode keeps the mode at READWRITE: clients cannot change it.
	FixedMode bool
	// Pool runs this work; nil means a new pool.
	Pool *workpool.Pool
	// Quota limits the size of the registry; nil means no limit.
	Quota *quota.Cluster
	// SnapshotBytes is an option of statemachine.
	SnapshotBytes int64
	// Logger logs errors of background work; nil means slog.Default().
	Logger *slog.Logger
}

// Registry is a schema registry over a journal. It is safe for concurrent use.
type Registry struct {
	machine   *statemachine.Machine[*state]
	parsed    *lru.Cache[parseID, parsedSchema]
	pool      *workpool.Pool // parses and compares schemas
	fixedMode bool
	checkTime time.Duration // limits the parsing and comparing of one call; 0 means the default of workpool
	quota     *quota.Cluster
}

// cacheBytes limits the memory of the cache of parsed schemas.
const cacheBytes = 64 << 20

// Open opens the registry of a journal.
func Open(ctx context.Context, journal engine.Journal, opts Options) (*Registry, error) {
	machine, err := statemachine.Open(ctx, journal, statemachine.Options[*state]{
		Name:          "registry",
		Empty:         newState,
		Restore:       restore,
		SnapshotBytes: opts.SnapshotBytes,
		Logger:        opts.Logger,
	})
	if err != nil {
		return nil, err
	}
	if opts.Pool == nil {
		opts.Pool = workpool.New()
	}
	return &Registry{
		machine:   machine,
		parsed:    lru.New[parseID, parsedSchema](cacheBytes),
		pool:      opts.Pool,
		fixedMode: opts.FixedMode,
		quota:     opts.Quota,
	}, nil
}

// Close stops following the journal. It does not close the journal.
func (r *Registry) Close() error { return r.machine.Close() }

// Health returns nil, or why the registry rejects writes.
func (r *Registry) Health() error { return r.machine.Health() }

// Counts returns the numbers of schemas, versions and subjects.
func (r *Registry) Counts() Counts { return r.machine.View().counts }

// Position returns the position of the last record that the registry has applied.
func (r *Registry) Position() uint64 { return r.machine.Position() }
