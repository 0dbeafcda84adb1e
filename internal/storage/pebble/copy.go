package pebble

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// CopyTarget is a store that Copy creates, and selects the topics and journals that it contains.
type CopyTarget struct {
	Dir         string
	LogPosition []byte // position in the external log; nil for none
	Topic       func(id engine.TopicID) bool
	Journal     func(name string) bool
}

// CopyOptions configures Copy.
type CopyOptions struct {
	// From are the directories of the stores to copy. No process may have them open, and
	// no two contain the same topic or journal.
	From []string
	To   []CopyTarget
	// Checkpoint makes an interrupted copy resumable; nil for a copy that starts from the
	// beginning each time.
	Checkpoint Checkpoint
	// Progress is called with the bytes of the tables that are done.
	Progress func(done, total int64)

	flushEvery int64 // bytes between two checkpoints; 0 means copyFlushBytes
}

// Checkpoint stores how far a copy is durable.
type Checkpoint interface {
	// After returns the key that was saved last by an earlier call of Copy; nil if there is none.
	After() []byte
	// Save is called periodically when everything up to a key is durable.
	Save(after []byte) error
}

const (
	copyBatch         = 1 << 20
	copyFlushBytes    = 128 << 20
	copyProgressBytes = 8 << 20 // bytes between two calls of Progress
	copyBuffers       = 16 << 20
)

// Copy copies topics and journals from stores to new stores: it splits one store into
// several, or merges several into one. Messages, subscriptions and journals are copied byte
// by byte, except for the numbers of journals. Copy does not change the stores that it
// copies.
func Copy(ctx context.Context, o CopyOptions) (err error) {
	c := &copier{o: o}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.open(); err != nil {
		return err
	}
	return c.run(ctx)
}

type copier struct {
	o          CopyOptions
	sources    []*closedStore
	targets    []*targetStore
	total      int64
	unflushed  int64 // bytes since the last checkpoint
	unreported int64 // bytes since the last call of Progress
}

// targetStore is a store that is being created.
type targetStore struct {
	CopyTarget
	store *store
	batch *cdb.Batch
}

func (c *copier) open() error {
	era, format := uint64(0), uint64(0)
	next := uint32(1)
	for _, dir := range c.o.From {
		r, err := openClosed(dir)
		if err != nil {
			return err
		}
		c.sources = append(c.sources, r)
		era, format = max(era, r.era), max(format, r.format)
		if len(c.o.From) > 1 {
			next = r.renumber(next)
		}
		size, err := r.db.EstimateDiskUsage([]byte{0}, []byte{0xff})
		if err != nil {
			return storeError(err)
		}
		c.total += int64(size) //nolint:gosec // far from it
	}
	for _, part := range c.o.To {
		s, err := openStore(part.Dir, Options{MemTableBytes: copyBuffers, MinFreeBytes: -1}, true)
		if err != nil {
			return err
		}
		t := &targetStore{CopyTarget: part, store: s, batch: s.db.NewBatch()}
		c.targets = append(c.targets, t)
		for _, number := range []struct {
			key   byte
			value uint64
		}{{keyFormat, format}, {keyEraNow, era}} {
			if number.value == 0 {
				continue // an empty store has none
			}
			var p wire.Writer
			p.Uvarint(number.value)
			if err := t.set([]byte{number.key}, addChecksum([]byte{number.key}, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *copier) run(ctx context.Context) error {
	var after []byte
	if c.o.Checkpoint != nil {
		after = c.o.Checkpoint.After()
	}
	all, err := newMergedIterator(c.sources, after)
	if err != nil {
		return err
	}
	defer all.close()
	for all.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		key, value, err := all.current()
		if err != nil {
			return err
		}
		if err := c.put(all.source(), key, value); err != nil {
			return err
		}
		c.unflushed, c.unreported = c.unflushed+int64(len(key)+len(value)), c.unreported+int64(len(key)+len(value))
		if err := c.reportProgress(key); err != nil {
			return err
		}
	}
	if err := all.err(); err != nil {
		return err
	}
	for _, t := range c.targets {
		if t.LogPosition == nil {
			continue
		}
		if err := t.set([]byte{keyLogPosition}, addChecksum([]byte{keyLogPosition}, t.LogPosition)); err != nil {
			return err
		}
	}
	c.o.Progress(c.total, c.total)
	return c.flush()
}

// put copies a key to the stores that select its topic or journal.
func (c *copier) put(from *closedStore, key, value []byte) error {
	is, err := from.ownerOf(key)
	if err != nil || is.unowned {
		return err
	}
	if is.journal {
		if key, value, err = from.renumbered(key, value); err != nil {
			return err
		}
	}
	for _, t := range c.targets {
		if is.journal && t.Journal(is.name) || !is.journal && t.Topic(is.topic) {
			if err := t.set(key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportProgress calls Progress and saves a checkpoint when they are due.
func (c *copier) reportProgress(key []byte) error {
	if c.unreported >= copyProgressBytes {
		c.unreported = 0
		var done int64
		for _, r := range c.sources {
			size, err := r.db.EstimateDiskUsage([]byte{0}, key)
			if err != nil {
				return storeError(err)
			}
			done += int64(size) //nolint:gosec // far from it
		}
		c.o.Progress(min(done, c.total), c.total)
	}
	if c.unflushed < cmp.Or(c.o.flushEvery, copyFlushBytes) {
		return nil
	}
	c.unflushed = 0
	if err := c.flush(); err != nil || c.o.Checkpoint == nil {
		return err
	}
	return c.o.Checkpoint.Save(bytes.Clone(key))
}

// flush makes everything durable that was copied so far.
func (c *copier) flush() error {
	for _, t := range c.targets {
		if err := t.write(); err != nil {
			return err
		}
		if err := t.store.db.Flush(); err != nil {
			return fmt.Errorf("flushing %s: %w", t.Dir, storeError(err))
		}
		if err := t.store.failure(); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) close() error {
	var problems []error
	for _, t := range c.targets {
		problems = append(problems, t.batch.Close(), t.store.close())
	}
	for _, r := range c.sources {
		problems = append(problems, r.close())
	}
	return errors.Join(problems...)
}

func (t *targetStore) set(key, value []byte) error {
	if err := t.batch.Set(key, value, nil); err != nil {
		return err
	}
	if t.batch.Len() < copyBatch {
		return nil
	}
	return t.write()
}

func (t *targetStore) write() error {
	if t.batch.Empty() {
		return nil
	}
	if err := t.store.db.Apply(t.batch, cdb.NoSync); err != nil {
		return fmt.Errorf("writing to %s: %w", t.Dir, err)
	}
	if err := t.batch.Close(); err != nil {
		return err
	}
	t.batch = t.store.db.NewBatch()
	return t.store.failure()
}
