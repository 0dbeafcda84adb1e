// Package journalcopy copies journals from one engine to another, record by record and
// with their positions, and tells whether two are the same. What a snapshot becomes is
// the engines' own business.
package journalcopy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"freshet/internal/storage/engine"
)

// batchBytes is how much is copied with one append.
const batchBytes = 1 << 20

// Records appends the records of a journal behind a position, where the other one ends,
// to that.
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

// Sum is a checksum of everything that a journal has.
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
