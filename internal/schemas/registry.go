package schemas

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"freshet/internal/engine"
	"freshet/internal/lru"
	"freshet/internal/quota"
	"freshet/internal/replica"
)

// Options configures a registry.
type Options struct {
	// FixedMode keeps the mode at READWRITE: clients cannot change it.
	FixedMode bool
	// CacheBytes bounds the memory of parsed schemas; 0 means 64 MiB.
	CacheBytes int64
	// CheckTime bounds the compatibility check of one schema against many
	// versions; 0 means 5 s.
	CheckTime time.Duration
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
	machine   *replica.Machine[*state]
	parsed    *lru.Cache[parseID, form]
	work      chan struct{} // bounds how many parse and compare at the same time
	fixedMode bool
	checkTime time.Duration
	quota     *quota.Cluster
}

// Open makes a registry of a journal.
func Open(ctx context.Context, journal engine.Journal, opts Options) (*Registry, error) {
	machine, err := replica.Open(ctx, journal, replica.Options[*state]{
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
	if opts.CheckTime == 0 {
		opts.CheckTime = 5 * time.Second
	}
	return &Registry{
		machine:   machine,
		parsed:    lru.New[parseID, form](opts.CacheBytes),
		work:      make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
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

// startWork waits for a place among those who parse and compare, so that many
// large schemas at once cannot take every core and all the memory.
func (r *Registry) startWork(ctx context.Context) error {
	select {
	case r.work <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Registry) endWork() { <-r.work }
