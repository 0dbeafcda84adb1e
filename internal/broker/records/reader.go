package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Grow is asked before a Reader holds more memory. total is all memory that it will hold, in bytes.
// An error makes the reader fail with the same error and keep what it has.
type Grow func(total int64) error

// chunkBytes is the size of a Reader's buffer, unless a record is larger.
const chunkBytes = 64 << 10

// chunks pools buffers of readers.
var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// Reader reads the records of one batch in order. It decompresses the batch while it reads, so its
// memory depends on the codec and on the largest record, and not on the size of the batch.
type Reader struct {
	head       BatchHeader
	compressed []byte
	maxRecord  int64 // largest encoded record; 0 means no limit

	next   int32  // index of the next record
	plain  []byte // bytes that were decompressed and not read yet
	record Record

	// The fields below are only used for a compressed batch.
	source decompressor
	memory int64  // memory of the source in bytes
	buffer []byte // contains plain; nil before the first record
	chunk  *[chunkBytes]byte
	total  int64 // bytes that were decompressed
	ended  bool  // the source has no more bytes
	failed error // the source cannot be used any more
}

// NewReader returns a reader of a whole batch. It does not check the checksum. The batch must not
// change before Close.
func NewReader(batch []byte) (*Reader, error) {
	head, err := ReadBatchHeader(batch)
	if err != nil {
		return nil, err
	}
	return newReader(&head, batch[:head.Size]), nil
}

func newReader(head *BatchHeader, batch []byte) *Reader {
	r := &Reader{head: *head, compressed: batch[BatchHeaderSize:]}
	if head.Codec() == None {
		r.plain, r.ended = r.compressed, true
	}
	return r
}

// Head returns the header of the batch.
func (r *Reader) Head() *BatchHeader { return &r.head }

// Memory returns how much memory the reader holds in bytes, without the batch itself.
func (r *Reader) Memory() int64 {
	if r.buffer == nil {
		return 0
	}
	return r.memory + int64(cap(r.buffer))
}

// Close returns the reader's memory to a pool. The reader must not be used afterwards.
func (r *Reader) Close() {
	if r.source.release != nil {
		r.source.release()
		r.source = decompressor{}
	}
	if r.chunk != nil {
		chunks.Put(r.chunk)
		r.chunk = nil
	}
	r.buffer, r.plain = nil, nil
}

// Next returns the next record with its index, or io.EOF after the last one. The record is valid
// until the next call. The error of an invalid record is a *RecordError. After an error of grow,
// which may be nil, the call may be repeated.
func (r *Reader) Next(grow Grow) (int32, *Record, error) {
	if r.next >= r.head.Count {
		return 0, nil, r.end()
	}
	if !r.ended {
		if err := r.load(grow); err != nil {
			return 0, nil, err
		}
	}
	rest, err := r.record.read(&r.head, r.plain)
	if err != nil {
		return 0, nil, &RecordError{Index: r.next, Err: err}
	}
	r.plain = rest
	r.next++
	return r.next - 1, &r.record, nil
}

// load decompresses until plain contains the whole next record, or all that is left.
func (r *Reader) load(grow Grow) error {
	if r.failed != nil {
		return r.failed
	}
	if r.buffer == nil {
		if err := r.open(grow); err != nil {
			return err
		}
	}
	for {
		length, n := binary.Varint(r.plain)
		switch {
		case n < 0, length < 0, length > MaxDecompressedBytes:
			return nil // read returns the error
		case n > 0 && r.maxRecord > 0 && length > r.maxRecord:
			return &RecordError{Index: r.next, Err: fmt.Errorf("%w: record has %d bytes, at most %d are allowed",
				ErrTooLarge, length, r.maxRecord)}
		case n > 0 && int64(len(r.plain)-n) >= length, r.ended:
			return nil
		}
		if err := r.fill(int64(n)+length, grow); err != nil {
			return err
		}
	}
}

// open opens the decompressor.
func (r *Reader) open(grow Grow) error {
	memory, err := decompressorMemory(r.head.Codec(), r.compressed)
	if err != nil {
		r.failed = decompressionError(err)
		return r.failed
	}
	if grow != nil {
		if err := grow(memory + chunkBytes); err != nil {
			return err
		}
	}
	if r.source, err = openDecompressor(r.head.Codec(), r.compressed, memory); err != nil {
		r.failed = decompressionError(err)
		return r.failed
	}
	r.memory = memory
	r.chunk, _ = chunks.Get().(*[chunkBytes]byte)
	r.buffer = r.chunk[:]
	return nil
}

// fill decompresses more bytes of a record that has this size.
func (r *Reader) fill(size int64, grow Grow) error {
	if len(r.plain) == len(r.buffer) { // full: double it, so that it grows with bytes that exist
		if err := r.enlarge(min(2*int64(len(r.buffer)), max(size, int64(len(r.buffer))+chunkBytes)), grow); err != nil {
			return err
		}
	} else if cap(r.plain) != cap(r.buffer) { // plain is not at the beginning of the buffer
		copy(r.buffer, r.plain)
	}
	n, err := r.source.Read(r.buffer[len(r.plain):])
	r.plain = r.buffer[:len(r.plain)+n]
	return r.count(n, err)
}

// count records the result of reading the source.
func (r *Reader) count(n int, err error) error {
	r.total += int64(n)
	switch {
	case r.total > MaxDecompressedBytes:
		r.failed = errDecompressedSize
	case errors.Is(err, io.EOF):
		r.ended = true
	case err != nil:
		r.failed = decompressionError(err)
	}
	return r.failed
}

func (r *Reader) enlarge(size int64, grow Grow) error {
	if grow != nil {
		// The old buffer exists until its content is copied.
		if err := grow(r.Memory() + size); err != nil {
			return err
		}
	}
	larger := make([]byte, size)
	r.plain = larger[:copy(larger, r.plain)]
	r.buffer = larger
	if r.chunk != nil {
		chunks.Put(r.chunk)
		r.chunk = nil
	}
	return nil
}

// end returns io.EOF unless bytes follow the last record.
func (r *Reader) end() error {
	follow := int64(len(r.plain))
	for !r.ended {
		if r.failed != nil {
			return r.failed
		}
		n, err := r.source.Read(r.buffer)
		follow += int64(n)
		if err := r.count(n, err); err != nil {
			return err
		}
	}
	if follow > 0 {
		return fmt.Errorf("%w: %d bytes follow the last record", ErrInvalid, follow)
	}
	return io.EOF
}
