package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/cleanclose"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// formatVersion is the version of the layout of keys and values that this package writes.
// It reads all earlier versions:
//
//   - 1: a message is deduplicated by its producer and sequence;
//   - 2: a record may have a deduplication key of its own (record.go);
//   - 3: a value may be a batch of messages, and may have an extended header (record.go,
//     batches.go).
const formatVersion = 3

// Options configures a store. The zero value is usable.
type Options struct {
	// FS is the file system of the store; nil means the disk.
	FS vfs.FS
	// Splitter decodes batches of messages; it may be nil only for a store without
	// batches.
	Splitter engine.Splitter
	// MustExist makes opening a store that does not exist an error.
	MustExist bool
	// Cache is shared between stores; nil gives the store a small cache of its own.
	Cache *Cache
	// Logger receives warnings and errors for the operator; nil discards them.
	Logger *slog.Logger
	// MinFreeBytes is the free disk space below which appends are rejected. 0 means
	// a share of the disk's size (see diskspace.go); a negative value disables the
	// check.
	MinFreeBytes int64
	// MemTableBytes is the size of Pebble's write buffer; 0 means 64 MiB, or less with Siblings.
	MemTableBytes int
	// Siblings is the number of stores of the same cluster, including this one, which are written at the
	// same time. They divide the memory of one busy store (writeBuffers). 0 means 1.
	Siblings int
	// IdleAfter is how long an unused topic stays in memory; 0 means a minute.
	IdleAfter time.Duration
	// MaxLoaded is how many topics stay in memory, used or not. Topics with a
	// waiting consumer or a lease are not unloaded. 0 means 65536.
	MaxLoaded int
	// TrimDelay is how long trimming is delayed, so that a busy topic is not
	// trimmed message by message; 0 means 3 seconds.
	TrimDelay time.Duration
	// EraBytes is the size of the messages of one era; 0 means a quarter of
	// MemTableBytes, and 16 MiB without it. See era.go.
	EraBytes int64
	// DedupWindow is the minimum retention of a topic that deduplicates; 0 means
	// 10 minutes.
	DedupWindow time.Duration
	// DeadLetters appends dead letters to topics of other stores. nil means that there
	// is no other store.
	DeadLetters DeadLetters
}

// DeadLetters appends messages to topics; engine.Log implements it.
type DeadLetters interface {
	// Append returns when the messages are durable.
	Append(ctx context.Context, id engine.TopicID, partition int32, msgs []engine.Message) ([]engine.Appended, error)
}

// defaultCacheBytes is the size of the block cache of a store that shares none.
const defaultCacheBytes = 64 << 20

// closeFlushBytes is the memtable size up to which closing skips the flush: replaying
// so little of the log at the next start is cheaper.
const closeFlushBytes = 4 << 20

// slowWriteThreshold is the duration after which a write is logged as slow.
const slowWriteThreshold = 5 * time.Second

// Cache is shared by several stores. It limits the memory for their blocks and the number
// of their open tables.
type Cache struct {
	blocks *cdb.Cache
	tables *cdb.FileCache
	splits *splitCache
}

// NewCache returns a cache with a limit for the bytes of blocks and for the number of
// open tables. Pebble charges the write buffers of the stores to the same memory, so
// NewCache adds those of one busy store; an idle store uses a few hundred KB. The memory of
// decoded batches belongs to the budget; nil means one of the default size.
func NewCache(bytes int64, tables int, budget *unpacking.Budget) *Cache {
	return &Cache{
		blocks: cdb.NewCache(bytes + writeBuffers(defaultMemTable)),
		tables: cdb.NewFileCache(runtime.GOMAXPROCS(0), tables),
		splits: newSplitCache(budget),
	}
}

const (
	defaultMemTable = 64 << 20
	minMemTable     = 8 << 20 // of a store with many siblings
)

// writeBuffers returns the memory for the write buffers of a busy store: one being
// written and one being flushed.
func writeBuffers(memTable int) int64 { return 2 * int64(memTable) }

// Close releases the cache's memory once the stores that use it are closed.
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
	if o.EraBytes == 0 {
		o.EraBytes = int64(cmp.Or(o.MemTableBytes, defaultMemTable)) / 4
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = max(defaultMemTable/max(1, o.Siblings), minMemTable)
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
	unchanged, err := checkIntact(fs, s.dir, s.opts.MustExist)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", s.dir, err)
	}
	s.copy.verified.Store(unchanged)
	if err := cleanclose.Forget(folder{fs, s.dir}); err != nil {
		return nil, fmt.Errorf("opening %s: %w", s.dir, err)
	}
	if fs == vfs.Default {
		fs, s.health = vfs.WithDiskHealthChecks(fs, slowWriteThreshold, nil, func(info vfs.DiskSlowInfo) {
			s.log.Warn("store: disk is slow", slog.String("detail", info.String()))
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
	// Tables of old eras move to the lowest level unchanged, so they should be large
	// from the start to limit their number.
	opts.TargetFileSizes[0] = max(256<<10, int64(s.opts.MemTableBytes)/8)
	opts.Experimental.SpanPolicyFunc = spanPolicy
	profile := uncompressed()
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opts.Levels[i].Compression = func() *sstable.CompressionProfile { return profile }
	}
	opts.CacheSize = defaultCacheBytes + writeBuffers(s.opts.MemTableBytes)
	if s.opts.Cache != nil {
		opts.Cache, opts.FileCache = s.opts.Cache.blocks, s.opts.Cache.tables
	}
	before := formatOf(s.fs, s.dir)
	db, err := openPebble(s.dir, opts)
	if err != nil {
		if strings.Contains(err.Error(), "unknown format major version") {
			return nil, fmt.Errorf("opening %s: %w", s.dir, engine.ErrNewerFormat)
		}
		return nil, fmt.Errorf("opening %s: %w", s.dir, storeError(err))
	}
	if before < opts.FormatMajorVersion {
		// Pebble has begun its log in an older format, in which damage cannot be
		// distinguished from a crash (logscan.go). A flush begins a new log.
		if err := db.Flush(); err != nil {
			return nil, errors.Join(fmt.Errorf("opening %s: %w", s.dir, storeError(err)), db.Close())
		}
	}
	return db, nil
}

// formatOf returns the format in which Pebble last wrote the store, or the oldest one
// when the store does not exist.
func formatOf(fs vfs.FS, dir string) cdb.FormatMajorVersion {
	desc, err := cdb.Peek(dir, fs)
	if err != nil {
		return cdb.FormatMinSupported // opening the store reports the error
	}
	return desc.FormatMajorVersion
}

// openPebble opens a Pebble store and converts panics into errors: some kinds of damage
// make Pebble panic.
func openPebble(dir string, opts *cdb.Options) (db *cdb.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", engine.ErrCorrupt, r)
		}
	}()
	return cdb.Open(dir, opts)
}

// newerFormat returns the error of a store whose format is newer than formatVersion.
func newerFormat(version uint64) error {
	return fmt.Errorf("%w: its format is %d, this version reads formats up to %d", engine.ErrNewerFormat, version,
		formatVersion)
}

// checkFormat rejects a store that a newer version wrote. It writes the current version
// to a new store and to one of an earlier format before anything else is written, so that
// an older program never misreads later data.
func (e *Engine) checkFormat() error {
	key := []byte{keyFormat}
	body, err := e.get(key)
	if err != nil && !errors.Is(err, cdb.ErrNotFound) {
		return err
	}
	if err == nil {
		u := unpack(body)
		v := u.Uvarint()
		switch {
		case u.Err() != nil:
			return u.Err()
		case v > formatVersion:
			return fmt.Errorf("opening %s: %w", e.dir, newerFormat(v))
		case v == formatVersion:
			return nil
		}
	}
	g, err := e.commit.lockBatch()
	if err != nil {
		return err
	}
	var p wire.Writer
	p.Uvarint(formatVersion)
	g.setLocked(key, p)
	e.commit.unlockAndCommit()
	return g.wait(context.Background())
}
