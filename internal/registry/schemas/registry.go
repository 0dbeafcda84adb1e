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
	// CacheBytes bounds the memory of parsed schemas; 0 means 64 MiB.
	CacheBytes int64
	// CheckTime bounds how long one call may parse and compare; 0 means what
	// workpool says.
	CheckTime time.Duration
	// Pool is where that is done; nil means one of its own.
	Pool *workpool.Pool
	// Quota is what the registry may take; nil: everything.
	Quota *quota.Cluster
	// SnapshotBytes is passed on to replica.
	SnapshotBytes int64
	// Logger gets background failures; nil means slog.Default().
	Logger *slog.Logger
}

// Registry is a schema registry over a journal. Its methods may be called from
// any number of goroutines.
type Registry struct {
	machine   *statemachine.Machine[*state]
	parsed    *lru.Cache[parseID, form]
	pool      *workpool.Pool // where schemas are parsed and compared
	fixedMode bool
	checkTime time.Duration
	quota     *quota.Cluster
}

// Open makes a registry of a journal.
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
	if opts.CacheBytes == 0 {
		opts.CacheBytes = 64 << 20
	}
	if opts.Pool == nil {
		opts.Pool = workpool.New()
	}
	return &Registry{
		machine:   machine,
		parsed:    lru.New[parseID, form](opts.CacheBytes),
		pool:      opts.Pool,
		fixedMode: opts.FixedMode,
		checkTime: opts.CheckTime,
		quota:     opts.Quota,
	}, nil
}

// Close stops following the journal, which stays open.
func (r *Registry) Close() error { return r.machine.Close() }

// Health returns nil, or why the registry takes no more writes.
func (r *Registry) Health() error { return r.machine.Health() }

// Counts returns how much the registry holds.
func (r *Registry) Counts() Counts { return r.machine.View().counts }

// Position returns the position of the journal that the registry has applied.
func (r *Registry) Position() uint64 { return r.machine.Position() }
