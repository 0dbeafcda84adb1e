package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/engine"
)

// formatVersion is the layout of keys and values that this package writes.
const formatVersion = 1

// Options say how to open a store. The zero value is a good one.
type Options struct {
	// FS is where the store lives; nil is the disk.
	FS vfs.FS
	// Cache is shared between stores; nil gives the store a small one of its own.
	Cache *Cache
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// MinFreeBytes of disk space must be left for appends to be taken;
	// 0 means DefaultMinFreeBytes, below 0 switches the guard off.
	MinFreeBytes int64
	// MemTableBytes is the size of Pebble's write buffer; 0 means 64 MiB.
	MemTableBytes int
	// IdleAfter is how long an unused topic stays in memory; 0 means a minute.
	IdleAfter time.Duration
	// MaxLoaded is how many topics stay in memory, used or not, unless they are
	// busy (somebody waits or holds a lease); 0 means 65536.
	MaxLoaded int
	// TrimDelay is how long after it became possible messages are trimmed, so
	// that a busy topic is not trimmed message by message; 0 means 3 seconds.
	TrimDelay time.Duration
	// EraBytes of messages are written before a new era begins; 0 means a quarter
	// of MemTableBytes. See era.go.
	EraBytes int64
	// DedupWindow is how long a topic that deduplicates keeps messages at least,
	// whatever its retention says; 0 means 10 minutes.
	DedupWindow time.Duration
}

// DefaultMinFreeBytes is the disk space that appends leave untouched, so that
// acknowledgements, deletions and compactions still have room.
const DefaultMinFreeBytes = 1 << 30

// defaultCacheBytes is what a store that shares no cache keeps for blocks.
const defaultCacheBytes = 64 << 20

// replayWorthwhile is how much of the log is rather replayed at the next start
// than flushed at this end.
const replayWorthwhile = 4 << 20

// slowDisk is how long a write may take before it is logged.
const slowDisk = 5 * time.Second

// Cache holds blocks of several stores in one bounded piece of memory. Write
// buffers (at most 4 x MemTableBytes for a busy store, a few hundred KB for an
// idle one) are taken out of it, so it should be larger than they are.
type Cache struct{ c *cdb.Cache }

// NewCache makes a cache of the given size.
func NewCache(bytes int64) *Cache { return &Cache{c: cdb.NewCache(bytes)} }

// Close gives the cache's memory back once the stores using it are closed.
func (c *Cache) Close() { c.c.Unref() }

// Engine is an open store.
type Engine struct {
	db     *cdb.DB
	dir    string
	fs     vfs.FS
	fuse   *fuse
	health io.Closer // watches for slow writes; nil in memory
	log    *slog.Logger
	opts   Options

	commit  committer
	eras    eraClock
	topics  topicTable
	clock   clock
	keeper  keeper
	dead    undertaker
	reclaim reclaimer
	guard   guard
	journal journalTable

	ops     atomic.Int64  // calls inside
	drained chan struct{} // signalled when ops reaches 0 while closing
	closing chan struct{}
	closed  atomic.Bool
	closeMu sync.Mutex
	ended   bool

	cause  atomic.Pointer[error] // what broke the engine
	failed chan struct{}         // closed with it
}

var _ engine.Engine = (*Engine)(nil)

// OpenMemory opens an empty store in memory, for tests.
func OpenMemory() (*Engine, error) {
	return Open("store", Options{FS: vfs.NewMem(), MemTableBytes: 4 << 20})
}

// Open opens the store in dir, creating it when it is new.
func Open(dir string, opts Options) (*Engine, error) {
	opts = opts.withDefaults()
	e := &Engine{
		dir:     dir,
		fs:      opts.FS,
		log:     opts.Logger,
		opts:    opts,
		drained: make(chan struct{}, 1),
		closing: make(chan struct{}),
		failed:  make(chan struct{}),
	}
	db, err := e.openStore()
	if err != nil {
		return nil, err
	}
	e.db = db
	e.fuse.armed.Store(true)
	e.commit.start(e)
	if err := errors.Join(e.checkFormat(), e.eras.start(e)); err != nil {
		return nil, errors.Join(err, e.closeStore())
	}
	e.topics.start(e)
	e.journal.start(e)
	e.clock.start(e)
	e.guard.start(e)
	e.reclaim.start(e)
	e.dead.start(e)
	e.keeper.start(e)
	return e, nil
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = DefaultMinFreeBytes
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 64 << 20
	}
	if o.EraBytes == 0 {
		o.EraBytes = int64(o.MemTableBytes) / 4
	}
	if o.IdleAfter == 0 {
		o.IdleAfter = time.Minute
	}
	if o.MaxLoaded == 0 {
		o.MaxLoaded = 1 << 16
	}
	if o.TrimDelay == 0 {
		o.TrimDelay = 3 * time.Second
	}
	if o.DedupWindow == 0 {
		o.DedupWindow = 10 * time.Minute
	}
	return o
}

func (e *Engine) openStore() (*cdb.DB, error) {
	fs := e.fs
	if fs == vfs.Default {
		fs, e.health = vfs.WithDiskHealthChecks(fs, slowDisk, nil, func(info vfs.DiskSlowInfo) {
			e.log.Warn("store: slow disk", "detail", info.String())
		})
	}
	e.fuse = &fuse{FS: fs, e: e}
	opts := &cdb.Options{
		FS:                          e.fuse,
		Logger:                      storeLogger{e},
		FormatMajorVersion:          cdb.FormatNewest,
		MemTableSize:                uint64(e.opts.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       64,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		BytesPerSync:                1 << 20,
		FlushDelayDeleteRange:       30 * time.Second,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)/2) },
		EventListener:               e.events(),
	}
	// Tables of old eras sink to the lowest level as they are, so they should be
	// large from the start, or there will be too many of them.
	opts.TargetFileSizes[0] = max(256<<10, int64(e.opts.MemTableBytes)/8)
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	opts.CacheSize = defaultCacheBytes + 2*int64(e.opts.MemTableBytes)
	if e.opts.Cache != nil {
		opts.Cache = e.opts.Cache.c
	}
	db, err := cdb.Open(e.dir, opts)
	if err != nil {
		if strings.Contains(err.Error(), "unknown format major version") {
			return nil, fmt.Errorf("open %s: %w", e.dir, engine.ErrNewerFormat)
		}
		return nil, fmt.Errorf("open %s: %w", e.dir, storeError(err))
	}
	return db, nil
}

// checkFormat writes the format version into a new store and refuses one that
// a newer program wrote.
func (e *Engine) checkFormat() error {
	key := []byte{keyFormat}
	body, err := e.get(key)
	switch {
	case errors.Is(err, cdb.ErrNotFound):
		g, err := e.commit.enter()
		if err != nil {
			return err
		}
		var p packer
		p.uint(formatVersion)
		g.set(key, p)
		e.commit.leave()
		return g.wait(context.Background())
	case err != nil:
		return err
	}
	u := unpacker{rest: body}
	if v := u.uint(); u.err != nil {
		return u.err
	} else if v > formatVersion {
		return fmt.Errorf("open %s: %w: its format is %d, this program knows %d", e.dir, engine.ErrNewerFormat, v, formatVersion)
	}
	return nil
}

// get reads and checks a sealed value; cdb.ErrNotFound when there is none.
func (e *Engine) get(key []byte) ([]byte, error) {
	value, closer, err := e.db.Get(key)
	if err != nil {
		if errors.Is(err, cdb.ErrNotFound) {
			return nil, cdb.ErrNotFound
		}
		return nil, storeError(err)
	}
	defer closer.Close()
	body, err := unseal(key, value)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), body...), nil
}

// scan calls visit for every sealed value whose key starts with prefix.
func (e *Engine) scan(prefix []byte, visit func(key, body []byte) error) error {
	iter, err := e.db.NewIter(&cdb.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return storeError(err)
	}
	defer iter.Close()
	for ok := iter.First(); ok; ok = iter.Next() {
		body, err := unseal(iter.Key(), iter.Value())
		if err != nil {
			return err
		}
		if err := visit(iter.Key(), body); err != nil {
			return err
		}
	}
	return storeError(iter.Error())
}

// storeError says in the seam's words what Pebble found damaged.
func storeError(err error) error {
	if err != nil && cdb.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return err
}

// enter counts a call in; every enter that returns nil needs a leave.
func (e *Engine) enter() error {
	e.ops.Add(1)
	if e.closed.Load() {
		e.leave()
		return engine.ErrClosed
	}
	if e.cause.Load() != nil {
		e.leave()
		return engine.ErrFailed
	}
	return nil
}

func (e *Engine) leave() {
	if e.ops.Add(-1) == 0 && e.closed.Load() {
		select {
		case e.drained <- struct{}{}:
		default:
		}
	}
}

// fail stops the engine for good: nothing is acknowledged any more.
func (e *Engine) fail(err error) {
	if !e.cause.CompareAndSwap(nil, &err) {
		return
	}
	close(e.failed)
	e.log.Error("engine stopped after a failed write", "dir", e.dir, "error", err)
	e.commit.fail()
}

// fault returns what broke the engine, or nil.
func (e *Engine) fault() error {
	if p := e.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Health implements engine.Engine.
func (e *Engine) Health() error {
	if e.closed.Load() {
		return engine.ErrClosed
	}
	if err := e.fault(); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrFailed, err)
	}
	return nil
}

// Close implements engine.Engine.
func (e *Engine) Close() error {
	e.closeMu.Lock()
	defer e.closeMu.Unlock()
	if e.ended {
		return nil
	}
	e.ended = true
	e.closed.Store(true)
	close(e.closing)
	for e.ops.Load() > 0 {
		<-e.drained
	}
	e.keeper.close()
	e.dead.close()
	e.guard.close()
	e.clock.close()
	e.reclaim.close()
	if err := e.closeStore(); err != nil {
		return fmt.Errorf("close %s: %w", e.dir, err)
	}
	return nil
}

// closeStore flushes the last group and closes Pebble. A store that has failed
// is left alone: goroutines of Pebble wait inside it for ever, and its lock is
// held until the process ends.
func (e *Engine) closeStore() error {
	if e.fault() == nil {
		e.commit.close()
	}
	e.fuse.armed.Store(false)
	if e.fault() != nil {
		return engine.ErrFailed
	}
	var err error
	if e.db.Metrics().MemTable.Size > replayWorthwhile {
		err = e.db.Flush()
	}
	err = errors.Join(err, e.db.Close())
	if e.health != nil {
		err = errors.Join(err, e.health.Close())
	}
	return err
}

// Checkpoint writes a consistent copy of the store to dir, which must not exist.
// Files are linked where the file system can, so it is quick and takes little space.
func (e *Engine) Checkpoint(dir string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.db.Checkpoint(dir, cdb.WithFlushedWAL()); err != nil {
		return fmt.Errorf("checkpoint to %s: %w", dir, storeError(err))
	}
	return nil
}
