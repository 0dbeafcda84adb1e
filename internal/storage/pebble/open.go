package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/cleanclose"
	"freshet/internal/base/lru"
	"freshet/internal/storage/engine"
)

// formatVersion is the layout of keys and values that this package writes. It
// reads all earlier ones:
//
//   - 1: a message is deduplicated by its producer and sequence;
//   - 2: a record may have a deduplication key of its own (record.go);
//   - 3: a value may be a run of messages, and has more head (record.go, runs.go).
const formatVersion = 3

// Options say how to open a store. The zero value is a good one.
type Options struct {
	// FS is where the store lives; nil is the disk.
	FS vfs.FS
	// Splitter takes runs of messages apart; nil can only be used where there are
	// none.
	Splitter engine.Splitter
	// MustExist refuses to make a store where there is none.
	MustExist bool
	// Cache is shared between stores; nil gives the store a small one of its own.
	Cache *Cache
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// MinFreeBytes of disk space must be left for appends to be taken; 0 means
	// a share of the disk's size (see diskspace.go), below 0 switches this off.
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
	// DeadLetters takes dead letters for topics that are not in this store, and
	// returns when they are durable; nil: there are no others.
	DeadLetters func(ctx context.Context, to engine.TopicID, letter engine.Message) error
}

// defaultCacheBytes is what a store that shares no cache keeps for blocks.
const defaultCacheBytes = 64 << 20

// replayWorthwhile is how much of the log is rather replayed at the next start
// than flushed at this end.
const replayWorthwhile = 4 << 20

// slowDisk is how long a write may take before it is logged.
const slowDisk = 5 * time.Second

// Cache holds blocks of several stores in one bounded piece of memory, and
// keeps their tables open within one bounded number of files.
type Cache struct {
	blocks *cdb.Cache
	tables *cdb.FileCache
	splits *lru.Cache[splitKey, *splitRun]
}

// NewCache makes a cache for blocks of so many bytes and for so many open
// tables. Pebble takes the write buffers of the stores out of the same memory,
// so the cache has room for those of one busy store besides; idle stores take a
// few hundred KB each.
func NewCache(bytes int64, tables int) *Cache {
	return &Cache{
		blocks: cdb.NewCache(bytes + writeBuffers(defaultMemTable)),
		tables: cdb.NewFileCache(runtime.GOMAXPROCS(0), tables),
		splits: lru.New[splitKey, *splitRun](splitCacheBytes),
	}
}

const defaultMemTable = 64 << 20

// writeBuffers is what a busy store has in use: one buffer being written and
// one being flushed.
func writeBuffers(memTable int) int64 { return 2 * int64(memTable) }

// Close gives the cache's memory back once the stores using it are closed.
func (c *Cache) Close() {
	c.tables.Unref()
	c.blocks.Unref()
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTable
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

func (s *store) open() (*cdb.DB, error) {
	fs := s.fs
	if err := intact(fs, s.dir, s.opts.MustExist); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir, err)
	}
	if err := cleanclose.Forget(folder{fs, s.dir}); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir, err)
	}
	if fs == vfs.Default {
		fs, s.health = vfs.WithDiskHealthChecks(fs, slowDisk, nil, func(info vfs.DiskSlowInfo) {
			s.log.Warn("store: the disk is slow", "detail", info.String())
		})
	}
	s.failStop = &failStopFS{FS: fs, s: s}
	opts := &cdb.Options{
		FS:                          s.failStop,
		Logger:                      storeLogger{s},
		FormatMajorVersion:          cdb.FormatNewest,
		MemTableSize:                uint64(s.opts.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       64,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		BytesPerSync:                1 << 20,
		FlushDelayDeleteRange:       30 * time.Second,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)/2) },
		EventListener:               s.events(),
		DisableWAL:                  s.logged,
	}
	// Tables of old eras sink to the lowest level as they are, so they should be
	// large from the start, or there will be too many of them.
	opts.TargetFileSizes[0] = max(256<<10, int64(s.opts.MemTableBytes)/8)
	// And none of them holds other keys besides, which sort behind all messages:
	// it would cover every era to come and be rewritten with each of them.
	opts.Experimental.SpanPolicyFunc = cdb.MakeStaticSpanPolicyFunc(cdb.DefaultComparer.Compare,
		cdb.KeyRange{Start: []byte{keyMessage}, End: []byte{keyMessage + 1}}, cdb.SpanPolicy{})
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	opts.CacheSize = defaultCacheBytes + writeBuffers(s.opts.MemTableBytes)
	if s.opts.Cache != nil {
		opts.Cache, opts.FileCache = s.opts.Cache.blocks, s.opts.Cache.tables
	}
	before := formatOf(s.fs, s.dir)
	db, err := openPebble(s.dir, opts)
	if err != nil {
		if strings.Contains(err.Error(), "unknown format major version") {
			return nil, fmt.Errorf("open %s: %w", s.dir, engine.ErrNewerFormat)
		}
		return nil, fmt.Errorf("open %s: %w", s.dir, storeError(err))
	}
	if before < opts.FormatMajorVersion {
		// Pebble has begun its log in an older format, whose damage cannot be
		// told from a crash (logscan.go). A flush begins another.
		if err := db.Flush(); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", s.dir, storeError(err)), db.Close())
		}
	}
	return db, nil
}

// formatOf is the format that Pebble last wrote a store in, the oldest when there
// is none.
func formatOf(fs vfs.FS, dir string) cdb.FormatMajorVersion {
	desc, err := cdb.Peek(dir, fs)
	if err != nil {
		return cdb.FormatMinSupported // opening it says what is wrong
	}
	return desc.FormatMajorVersion
}

// openPebble is Open without its panics, which some kinds of damage cause.
func openPebble(dir string, opts *cdb.Options) (db *cdb.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", engine.ErrCorrupt, r)
		}
	}()
	return cdb.Open(dir, opts)
}

// checkFormat refuses a store that a newer program wrote. A new store and one
// of an earlier format get the current version before anything else is
// written, so that an older program never misreads what follows.
func (e *Engine) checkFormat() error {
	key := []byte{keyFormat}
	body, err := e.get(key)
	if err != nil && !errors.Is(err, cdb.ErrNotFound) {
		return err
	}
	if err == nil {
		u := unpacker{rest: body}
		v := u.uint()
		switch {
		case u.err != nil:
			return u.err
		case v > formatVersion:
			return fmt.Errorf("open %s: %w: its format is %d, this version reads formats up to %d", e.dir,
				engine.ErrNewerFormat, v, formatVersion)
		case v == formatVersion:
			return nil
		}
	}
	g, err := e.commit.lockGroup()
	if err != nil {
		return err
	}
	var p packer
	p.uint(formatVersion)
	g.set(key, p)
	e.commit.unlockAndCommit()
	return g.wait(context.Background())
}
