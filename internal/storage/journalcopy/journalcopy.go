// Package journalcopy copies the records of a journal from one engine to another, with
// their positions, and computes checksums that show whether two journals are equal. It
// does not copy snapshots: each engine stores them in its own way (Engine.SeedJournal of
// storage/pebble, and ensemble/journal).
package journalcopy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"freshet/internal/storage/engine"
)

// batchBytes is the size of the records that are copied with one append.
const batchBytes = 1 << 20

// Records appends the records of one journal after a position to another journal, which
// must end at that position.
func Records(ctx context.Context, from, to engine.Journal, after uint64) error {
	var batch [][]byte
	size := 0
	flush := func() (err error) {
		if len(batch) > 0 {
			after, err = to.Append(ctx, after, batch...)
		}
		batch, size = nil, 0
		return err
	}
	_, err := from.Replay(ctx, after, func(_ uint64, record []byte) error {
		if size+len(record) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		batch = append(batch, append([]byte(nil), record...))
		size += len(record) + 8
		return nil
	})
	return errors.Join(err, flush())
}

// Sum returns a checksum of the journal's snapshot and records.
func Sum(ctx context.Context, j engine.Journal) (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	position, state, err := j.LoadSnapshot(ctx)
	if err != nil {
		return sum, err
	}
	_, _ = fmt.Fprintln(hash, position) // a hash never fails
	if state != nil {
		_, err := io.Copy(hash, state)
		if err := errors.Join(err, state.Close()); err != nil {
			return sum, err
		}
	}
	_, err = j.Replay(ctx, position, func(position uint64, record []byte) error {
		_, _ = fmt.Fprintln(hash, position, len(record)) // a hash never fails
		hash.Write(record)
		return nil
	})
	return [sha256.Size]byte(hash.Sum(nil)), err
}
