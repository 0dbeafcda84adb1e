package records

import (
	"bytes"
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
	zstdReaders = sync.Pool{New: func() any { return newZstdReader() }}
	// largeZstdReaders are those with a window that many clients use, of 2 MiB. Their number is
	// bounded, because each keeps its window.
	largeZstdReaders = make(chan *zstd.Decoder, 8)
)

const (
	// gzipMemory is the memory of a gzip reader in bytes.
	gzipMemory = 64 << 10
	// smallZstdMemory and largeZstdMemory are the memory up to which a zstd reader returns to its
	// pool.
	smallZstdMemory = 1 << 20
	largeZstdMemory = 4 << 20
)

func newZstdReader() *zstd.Decoder {
	// With a concurrency of one the decoder has no goroutines, so a pool may drop it.
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxDecompressedBytes))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}

// getZstdReader returns a reader for frames that need this much memory.
func getZstdReader(memory int64) *zstd.Decoder {
	if memory <= smallZstdMemory {
		r, _ := zstdReaders.Get().(*zstd.Decoder)
		return r
	}
	select {
	case r := <-largeZstdReaders:
		return r
	default:
		return newZstdReader()
	}
}

// putZstdReader returns a reader that was used for this much memory to its pool.
func putZstdReader(r *zstd.Decoder, memory int64) {
	if r.Reset(nil) != nil || memory > largeZstdMemory {
		r.Close()
		return
	}
	if memory <= smallZstdMemory {
		zstdReaders.Put(r)
		return
	}
	select {
	case largeZstdReaders <- r:
	default:
		r.Close()
	}
}

// decompressor decompresses the records of a batch step by step.
type decompressor struct {
	io.Reader
	release func() // returns the memory to a pool
}

// decompressorMemory returns the memory of a decompressor in bytes, or an error for data that none
// can read.
func decompressorMemory(codec Codec, compressed []byte) (int64, error) {
	switch codec {
	case Gzip:
		return gzipMemory, nil
	case Snappy:
		return snappyMemory(compressed)
	case LZ4:
		return lz4Memory(compressed), nil
	case Zstd:
		return zstdMemory(compressed), nil
	}
	return 0, fmt.Errorf("%w: %d", ErrCodec, codec)
}

// openDecompressor returns a decompressor that uses up to this much memory.
func openDecompressor(codec Codec, compressed []byte, memory int64) (decompressor, error) {
	switch codec {
	case Gzip:
		r, _ := gzipReaders.Get().(*gzip.Reader)
		if r == nil {
			r = new(gzip.Reader)
		}
		if err := r.Reset(bytes.NewReader(compressed)); err != nil {
			gzipReaders.Put(r)
			return decompressor{}, err
		}
		return decompressor{r, func() { gzipReaders.Put(r) }}, nil
	case LZ4:
		r, _ := lz4Readers.Get().(*lz4.Reader)
		r.Reset(bytes.NewReader(compressed))
		return decompressor{r, func() {
			r.Reset(nil)
			lz4Readers.Put(r)
		}}, nil
	case Zstd:
		r := getZstdReader(memory)
		release := func() { putZstdReader(r, memory) }
		// The decoder would decompress a *bytes.Buffer at once; this reader is none.
		if err := r.Reset(bytes.NewReader(compressed)); err != nil {
			release()
			return decompressor{}, err
		}
		return decompressor{r, release}, nil
	case Snappy:
		if memory > chunkBytes {
			return decompressor{newSnappyReader(compressed, make([]byte, memory)), func() {}}, nil
		}
		chunk, _ := chunks.Get().(*[chunkBytes]byte)
		return decompressor{newSnappyReader(compressed, chunk[:]), func() { chunks.Put(chunk) }}, nil
	}
	return decompressor{}, fmt.Errorf("%w: %d", ErrCodec, codec)
}

var errDecompressedSize = fmt.Errorf("%w: records have more than %d bytes after decompression", ErrTooLarge,
	MaxDecompressedBytes)

// decompressionError converts an error of a decompressor.
func decompressionError(err error) error {
	switch {
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrCodec):
		return err
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return errDecompressedSize
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF // io.EOF means the end of the records
	}
	return fmt.Errorf("%w: decompressing the records: %w", ErrInvalid, err)
}

// snappyReader decompresses snappy data block by block.
type snappyReader struct {
	rest   []byte // the blocks that were not read yet
	framed bool
	buffer []byte // has room for the largest block
	plain  []byte // the part of the buffer that was not read yet
}

func newSnappyReader(compressed, buffer []byte) *snappyReader {
	r := &snappyReader{rest: compressed, buffer: buffer}
	if r.framed = bytes.HasPrefix(compressed, xerialMagic); r.framed {
		r.rest = compressed[xerialHeaderSize:]
	}
	return r
}

// Read implements io.Reader.
func (r *snappyReader) Read(p []byte) (int, error) {
	for len(r.plain) == 0 {
		if len(r.rest) == 0 {
			return 0, io.EOF
		}
		block, rest, err := nextSnappyBlock(r.rest, r.framed)
		if err != nil {
			return 0, err
		}
		r.rest = rest
		if r.plain, err = snappy.Decode(r.buffer, block); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.plain)
	r.plain = r.plain[n:]
	return n, nil
}
