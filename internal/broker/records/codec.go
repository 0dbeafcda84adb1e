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
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxUnpacked), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err) // the options are constant
		}
		return d
	})
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// maxKept is the capacity up to which a buffer returns to the pool.
const maxKept = 4 << 20

// unpack decompresses records. The result is valid until the caller calls release. It fails for
// records over MaxUnpacked.
func unpack(codec Codec, packed []byte) (plain []byte, release func(), err error) {
	buffer, _ := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	release = func() {
		if buffer.Cap() <= maxKept {
			buffers.Put(buffer)
		}
	}
	switch codec {
	case Gzip:
		plain, err = ungzip(buffer, packed)
	case Snappy:
		plain, err = unsnappy(buffer, packed)
	case LZ4:
		plain, err = unlz4(buffer, packed)
	case Zstd:
		plain, err = unzstd(buffer, packed)
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

var errUnpacked = fmt.Errorf("%w: records have more than %d bytes after decompression", ErrTooLarge, MaxUnpacked)

// drain reads r to its end, up to MaxUnpacked bytes.
func drain(buffer *bytes.Buffer, r io.Reader) ([]byte, error) {
	n, err := buffer.ReadFrom(io.LimitReader(r, MaxUnpacked+1))
	if err != nil {
		return nil, err
	}
	if n > MaxUnpacked {
		return nil, errUnpacked
	}
	return buffer.Bytes(), nil
}

func ungzip(buffer *bytes.Buffer, packed []byte) ([]byte, error) {
	r, _ := gzipReaders.Get().(*gzip.Reader)
	if r == nil {
		r = new(gzip.Reader)
	}
	defer gzipReaders.Put(r)
	if err := r.Reset(bytes.NewReader(packed)); err != nil {
		return nil, err
	}
	return drain(buffer, r)
}

func unlz4(buffer *bytes.Buffer, packed []byte) ([]byte, error) {
	r, _ := lz4Readers.Get().(*lz4.Reader)
	defer lz4Readers.Put(r)
	r.Reset(bytes.NewReader(packed))
	return drain(buffer, r)
}

func unzstd(buffer *bytes.Buffer, packed []byte) ([]byte, error) {
	plain, err := zstdReader().DecodeAll(packed, buffer.AvailableBuffer())
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, errUnpacked
	}
	if err != nil {
		return nil, err
	}
	return plain, nil
}

// xerialMagic begins snappy data in the framing of the Java client: the magic, two version numbers
// of four bytes each, then length-prefixed blocks.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHead = 16

func unsnappy(buffer *bytes.Buffer, packed []byte) ([]byte, error) {
	plain := buffer.AvailableBuffer()
	if !bytes.HasPrefix(packed, xerialMagic) {
		return appendSnappy(plain, packed)
	}
	if len(packed) < xerialHead {
		return nil, io.ErrUnexpectedEOF
	}
	for rest := packed[xerialHead:]; len(rest) > 0; {
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
	if len(dst)+size > MaxUnpacked {
		return nil, errUnpacked
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
