package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is the compression codec of a batch.
type Codec uint8

// The codecs.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// Decompressors are pooled because creating one costs more than decompressing most batches.
var (
	gzipReaders sync.Pool // *gzip.Reader
	lz4Readers  = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	zstdReader  = sync.OnceValue(func() *zstd.Decoder {
		// DecodeAll is safe for concurrent use; excess callers wait for a free decoder.
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxDecompressedBytes), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err) // the options are constant
		}
		return d
	})
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// maxPooledBuffer is the capacity up to which a buffer returns to the pool.
const maxPooledBuffer = 4 << 20

// decompress decompresses records. The result is valid until the caller calls release. It fails for
// records over MaxDecompressedBytes.
func decompress(codec Codec, compressed []byte) (plain []byte, release func(), err error) {
	buffer, _ := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	release = func() {
		if buffer.Cap() <= maxPooledBuffer {
			buffers.Put(buffer)
		}
	}
	switch codec {
	case Gzip:
		plain, err = decompressGzip(buffer, compressed)
	case Snappy:
		plain, err = decompressSnappy(buffer, compressed)
	case LZ4:
		plain, err = decompressLZ4(buffer, compressed)
	case Zstd:
		plain, err = decompressZstd(buffer, compressed)
	default:
		err = fmt.Errorf("%w: %d", ErrCodec, codec)
	}
	if err == nil {
		if cap(plain) > buffer.Cap() { // the decoder allocated a larger buffer: pool that one
			*buffer = *bytes.NewBuffer(plain[:0])
		}
		return plain, release, nil
	}
	release()
	if !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrCodec) {
		err = fmt.Errorf("%w: decompressing the records: %w", ErrInvalid, err)
	}
	return nil, nil, err
}

var errDecompressedSize = fmt.Errorf("%w: records have more than %d bytes after decompression", ErrTooLarge,
	MaxDecompressedBytes)

// readBounded reads r to its end, up to MaxDecompressedBytes bytes.
func readBounded(buffer *bytes.Buffer, r io.Reader) ([]byte, error) {
	n, err := buffer.ReadFrom(io.LimitReader(r, MaxDecompressedBytes+1))
	if err != nil {
		return nil, err
	}
	if n > MaxDecompressedBytes {
		return nil, errDecompressedSize
	}
	return buffer.Bytes(), nil
}

func decompressGzip(buffer *bytes.Buffer, compressed []byte) ([]byte, error) {
	r, _ := gzipReaders.Get().(*gzip.Reader)
	if r == nil {
		r = new(gzip.Reader)
	}
	defer gzipReaders.Put(r)
	if err := r.Reset(bytes.NewReader(compressed)); err != nil {
		return nil, err
	}
	return readBounded(buffer, r)
}

func decompressLZ4(buffer *bytes.Buffer, compressed []byte) ([]byte, error) {
	r, _ := lz4Readers.Get().(*lz4.Reader)
	defer lz4Readers.Put(r)
	r.Reset(bytes.NewReader(compressed))
	return readBounded(buffer, r)
}

func decompressZstd(buffer *bytes.Buffer, compressed []byte) ([]byte, error) {
	plain, err := zstdReader().DecodeAll(compressed, buffer.AvailableBuffer())
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, errDecompressedSize
	}
	if err != nil {
		return nil, err
	}
	return plain, nil
}

// xerialMagic begins snappy data in the framing of the Java client: the magic, two version numbers
// of four bytes each, then length-prefixed blocks.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeaderSize = 16

func decompressSnappy(buffer *bytes.Buffer, compressed []byte) ([]byte, error) {
	plain := buffer.AvailableBuffer()
	if !bytes.HasPrefix(compressed, xerialMagic) {
		return appendSnappy(plain, compressed)
	}
	if len(compressed) < xerialHeaderSize {
		return nil, io.ErrUnexpectedEOF
	}
	for rest := compressed[xerialHeaderSize:]; len(rest) > 0; {
		if len(rest) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		size := binary.BigEndian.Uint32(rest)
		rest = rest[4:]
		if uint64(size) > uint64(len(rest)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if plain, err = appendSnappy(plain, rest[:size]); err != nil {
			return nil, err
		}
		rest = rest[size:]
	}
	return plain, nil
}

// appendSnappy decompresses one block and appends it to dst. It rejects a claimed length over 64
// times the block, the most that snappy can expand, before it allocates memory.
func appendSnappy(dst, block []byte) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	if len(dst)+size > MaxDecompressedBytes {
		return nil, errDecompressedSize
	}
	if size > 64*len(block) {
		return nil, snappy.ErrCorrupt
	}
	if cap(dst)-len(dst) < size {
		dst = append(make([]byte, 0, max(2*cap(dst), len(dst)+size)), dst...)
	}
	plain, err := snappy.Decode(dst[len(dst):len(dst)+size], block)
	if err != nil {
		return nil, err
	}
	return dst[:len(dst)+len(plain)], nil
}
