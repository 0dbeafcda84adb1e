package replicated

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
)

// A batch goes into the log packed where that makes it smaller: a byte of the log is
// sent to each member twice and written twice by each, and packing it is done once. It
// is packed as a whole, before it is cut into parts (writer), and unpacked when all
// parts are there (follower). The header headPacking says so, and is in the checksum.

const (
	// packingS2 is a block of S2, which begins with the length that it had.
	packingS2 = "s2"
	// packFrom is the size from which on batches are packed: what fits into a packet
	// or two costs the same for each message of the log whatever its size.
	packFrom = 2 << 10
	// packUpTo is the size up to which batches are packed, and so what is unpacked at
	// most. The largest append is 64 MiB; what comes into its group besides has no bound
	// (small writes and dead letters do not wait for room), so that a batch may be
	// larger. It goes as it is then.
	packUpTo = 128 << 20
	// packSaves is the part of a batch that packing has to save to be worth unpacking.
	packSaves = 8
	// scratchKept is the largest buffer that is kept for the next batch: one for a group
	// of writes that is full.
	scratchKept = 9 << 20
	// markRoom is left behind an unpacked batch: the store adds its mark there, and
	// would copy the batch to a larger place otherwise.
	markRoom = 128
)

// errPacking says that the log goes on with a message of a newer version. The copy is
// good, and the log is too: nothing is lost, and there is nothing to accept.
var errPacking = errors.New("log is packed in a way that this version does not know; upgrade the member")

// errTooLarge says that no owner has packed the batch.
var errTooLarge = errors.New("packed batch is too large")

// scratch has buffers to pack into.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// pack returns what goes into the log for a batch, and how it is packed: the batch
// itself when it is not, else bytes of their own that hold nothing else in memory.
func pack(batch []byte) (data []byte, packing string) {
	if len(batch) < packFrom || len(batch) > packUpTo {
		return batch, ""
	}
	buffer := scratch.Get().(*[]byte)
	packed := s2.Encode((*buffer)[:cap(*buffer)], batch)
	data = batch
	if len(packed) <= len(batch)-len(batch)/packSaves {
		data, packing = bytes.Clone(packed), packingS2
	}
	if *buffer = packed; cap(packed) <= scratchKept {
		scratch.Put(buffer)
	}
	return data, packing
}

// unpack returns the batch that was packed. What it says of its size is believed up to
// packUpTo only.
func unpack(packing string, data []byte) ([]byte, error) {
	if err := knownPacking(packing); err != nil || packing == "" {
		return data, err
	}
	size, err := s2.DecodedLen(data)
	if err != nil {
		return nil, fmt.Errorf("size of a packed batch: %w", err)
	}
	if size > packUpTo {
		return nil, fmt.Errorf("%w: it says %d bytes, and at most %d are packed", errTooLarge, size, packUpTo)
	}
	batch, err := s2.Decode(make([]byte, 0, size+markRoom), data)
	if err != nil {
		return nil, fmt.Errorf("unpacking a batch: %w", err)
	}
	return batch, nil
}

// knownPacking returns nil for what unpack can unpack.
func knownPacking(packing string) error {
	if packing == "" || packing == packingS2 {
		return nil
	}
	return fmt.Errorf("%w: %q", errPacking, packing)
}
