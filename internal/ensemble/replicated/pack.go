package replicated

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
)

// A batch is compressed before it is appended to the log when that makes it smaller. Each
// byte of the log is sent to each member twice and written twice by each, but compressed
// once. A batch is compressed as a whole, before it is split into parts (writer), and
// decompressed when all parts have arrived (follower). The header headPacking names the
// compression and is covered by the checksum.

const (
	// packingS2 is an S2 block, which begins with the length of the uncompressed data.
	packingS2 = "s2"
	// minPackBytes is the smallest batch that is compressed. A message of the log that fits into
	// one or two packets costs the same whatever its size.
	minPackBytes = 2 << 10
	// maxPackBytes is the largest batch that is compressed, and so the limit for decompression.
	// The largest append is 64 MiB. The other writes of its commit batch have no limit (small
	// writes and dead letters are not delayed), so a batch may be larger; it is then not
	// compressed.
	maxPackBytes = 128 << 20
	// minSavingDivisor is the divisor for the smallest worthwhile saving: an eighth of the batch.
	minSavingDivisor = 8
	// maxPooledBytes is the largest buffer that is pooled for the next batch: the size for a
	// full commit batch.
	maxPooledBytes = 9 << 20
	// spareBytes is the spare capacity after a decompressed batch. The store appends its position
	// there without copying the batch.
	spareBytes = 128
)

// errUnknownPacking means that the log contains a message of a newer version. The copy and the log
// are intact: nothing is lost, and there is no loss to accept.
var errUnknownPacking = errors.New("log is packed in a way that this version does not support; upgrade the member")

// errTooLarge means that the data was not compressed by an owner.
var errTooLarge = errors.New("packed batch is too large")

// scratch pools buffers for compression.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// pack returns the data to append to the log for a batch, and its packing. When the batch is
// not compressed, data is the batch itself, otherwise a buffer of exactly the needed size.
func pack(batch []byte) (data []byte, packing string) {
	if len(batch) < minPackBytes || len(batch) > maxPackBytes {
		return batch, ""
	}
	buffer := scratch.Get().(*[]byte)
	packed := s2.Encode((*buffer)[:cap(*buffer)], batch)
	data = batch
	if len(packed) <= len(batch)-len(batch)/minSavingDivisor {
		data, packing = bytes.Clone(packed), packingS2
	}
	if *buffer = packed; cap(packed) <= maxPooledBytes {
		scratch.Put(buffer)
	}
	return data, packing
}

// unpack returns the uncompressed batch. It rejects an announced size above maxPackBytes before
// it allocates memory.
func unpack(packing string, data []byte) ([]byte, error) {
	if err := knownPacking(packing); err != nil || packing == "" {
		return data, err
	}
	size, err := s2.DecodedLen(data)
	if err != nil {
		return nil, fmt.Errorf("decoding the size of a packed batch: %w", err)
	}
	if size > maxPackBytes {
		return nil, fmt.Errorf("%w: %d bytes announced, want at most %d", errTooLarge, size, maxPackBytes)
	}
	batch, err := s2.Decode(make([]byte, 0, size+spareBytes), data)
	if err != nil {
		return nil, fmt.Errorf("unpacking a batch: %w", err)
	}
	return batch, nil
}

// knownPacking returns nil for a packing that unpack supports.
func knownPacking(packing string) error {
	if packing == "" || packing == packingS2 {
		return nil
	}
	return fmt.Errorf("%w: %q", errUnknownPacking, packing)
}
