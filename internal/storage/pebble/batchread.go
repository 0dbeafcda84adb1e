package pebble

import (
	"bytes"
	"context"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// batchLocation is the location of a batch that was read recently: readers of one message often
// read its neighbours too. It stays valid, because a stored batch never changes.
type batchLocation struct {
	last uint64
	head recordHead
}

// seekBatch moves the iterator to the value that contains an entry, and returns its key and
// value; cdb.ErrNotFound when there is none.
func seekBatch(iter *cdb.Iterator, p *partition, entry uint64) (key, value []byte, err error) {
	var want [messageKeyLen]byte
	putMessageKey(want[:], p.eraOf(entry), p.topic.id, p.index, entry)
	// Most reads are sequential.
	found := iter.Valid() && iter.Next() && samePartitionKey(iter.Key(), want[:]) && messageEntry(iter.Key()) == entry
	if !found {
		found = iter.SeekGE(want[:]) && samePartitionKey(iter.Key(), want[:])
	}
	if !found {
		if err := iter.Error(); err != nil {
			return nil, nil, storeError(err)
		}
		return nil, nil, cdb.ErrNotFound
	}
	value, err = iter.ValueAndErr()
	return iter.Key(), value, storeError(err)
}

// samePartitionKey reports whether two message keys are of the same era and partition.
func samePartitionKey(a, b []byte) bool { return bytes.Equal(a[:messageKeyLen-8], b[:messageKeyLen-8]) }

// recentBatchAt returns the location of the batch that was read last, if it contains the entry.
func (p *partition) recentBatchAt(entry uint64) *batchLocation {
	at := p.recentBatch.Load()
	if at == nil || entry > at.last || at.last-entry >= at.head.count || entry < p.first.Load() {
		return nil
	}
	return at
}

// recentSplitAt returns the decoded window with the entry if its batch was read last and the
// window is still cached. A consumer that reads a batch message by message then needs no iterator and does
// not verify the checksum of the whole batch for each message.
func (p *partition) recentSplitAt(entry uint64) *splitWindow {
	at := p.recentBatchAt(entry)
	if at == nil {
		return nil
	}
	return p.topic.e.splits.find(p.splitKey(at.last), entry)
}

// readBatch is read for a partition with batches.
func (r *reader) readBatch(ctx context.Context, p *partition, entry uint64) (engine.Record, int64, error) {
	if r.part != p || !r.batch.contains(entry) {
		r.part, r.batch = p, p.recentSplitAt(entry)
	}
	if r.batch == nil {
		if r.iter == nil {
			if err := r.iterate(); err != nil {
				return engine.Record{}, 0, err
			}
		}
		key, value, err := seekBatch(r.iter, p, entry)
		if err != nil {
			return engine.Record{}, 0, err
		}
		head, err := verify(key, value)
		if err != nil {
			return engine.Record{}, 0, err
		}
		last := messageEntry(key)
		if last-entry >= head.count {
			return engine.Record{}, 0, cdb.ErrNotFound
		}
		if !head.isBatch {
			rec, err := decode(key, value, p.id(entry))
			return rec, int64(len(value)), err
		}
		batch, err := p.split(ctx, last, head, value[head.body:], entry)
		if err != nil {
			return engine.Record{}, 0, err
		}
		r.batch = batch
		p.recentBatch.Store(&batchLocation{last, head})
	}
	rec, size, ok := r.batch.record(entry)
	if !ok {
		return engine.Record{}, 0, cdb.ErrNotFound
	}
	return rec, size, nil
}

// batchHead is head for a partition with batches: it returns the entry's share of its batch.
func (p *partition) batchHead(entry uint64) (recordHead, error) {
	if at := p.recentBatchAt(entry); at != nil {
		return at.head.at(entry - (at.last + 1 - at.head.count)), nil
	}
	r := reader{e: p.topic.e}
	defer r.close()
	if err := r.iterate(); err != nil {
		return recordHead{}, err
	}
	key, value, err := seekBatch(r.iter, p, entry)
	if err != nil {
		return recordHead{}, err
	}
	last := messageEntry(key)
	head, err := verify(key, value)
	if err != nil {
		return damagedHead(value, last-entry), err
	}
	if last-entry >= head.count {
		return recordHead{}, cdb.ErrNotFound
	}
	if head.isBatch {
		p.recentBatch.Store(&batchLocation{last, head})
	}
	return head.at(entry - (last + 1 - head.count)), nil
}

// damagedHead returns the head of a message in a damaged value: the size if the message is
// the last of the value, so that the size is counted once; before is the number of entries
// from the message to the last.
func damagedHead(value []byte, before uint64) recordHead {
	if before > 0 {
		return recordHead{}
	}
	return recordHead{size: int64(len(value))}
}
