package records

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// The functions below read the frames of compressed data without decompressing it. They return how
// much memory the decompressor allocates for it, which the client who compressed it has chosen.

const (
	// zstdBlockMemory is the memory of a zstd decoder in addition to its window: two blocks and
	// its tables.
	zstdBlockMemory = 512 << 10
	// lz4BaseMemory is the memory of an lz4 reader in addition to its two blocks.
	lz4BaseMemory = 256 << 10
	// lz4LegacyBlock is the size of a block of the legacy format of lz4, the largest of all.
	lz4LegacyBlock = 8 << 20

	lz4Magic          = 0x184d2204
	lz4SkippableMagic = 0x184d2a50 // and 15 more
)

// zstdMemory returns the memory for the largest window of the frames. The decoder rejects windows
// over MaxDecompressedBytes before it allocates them.
func zstdMemory(data []byte) int64 {
	window := uint64(0)
	for len(data) > 0 {
		var head zstd.Header
		if head.Decode(data) != nil {
			break // the decoder returns the error
		}
		size := uint64(head.HeaderSize)
		if head.Skippable {
			size += uint64(head.SkippableSize)
		} else {
			window = max(window, head.WindowSize)
			size = zstdFrameSize(data, size, head.HasCheckSum)
		}
		data = data[min(size, uint64(len(data))):]
	}
	return int64(min(window, MaxDecompressedBytes)) + zstdBlockMemory
}

// zstdFrameSize returns the size of the frame that data begins with; at is the size of its header.
func zstdFrameSize(data []byte, at uint64, checksum bool) uint64 {
	const blockHeader = 3
	for at+blockHeader <= uint64(len(data)) {
		head := uint64(data[at]) | uint64(data[at+1])<<8 | uint64(data[at+2])<<16
		at += blockHeader
		if repeated := head>>1&3 == 1; repeated {
			at++
		} else {
			at += head >> 3
		}
		if last := head&1 == 1; last {
			if checksum {
				at += 4
			}
			return at
		}
	}
	return uint64(len(data)) // incomplete
}

// lz4Memory returns the memory for the largest block of the frames.
func lz4Memory(data []byte) int64 {
	block := int64(64 << 10)
	for len(data) >= 4 {
		magic := binary.LittleEndian.Uint32(data)
		var size uint64
		switch {
		case len(data) < 8: // incomplete
			size = uint64(len(data))
		case magic&^15 == lz4SkippableMagic:
			size = 8 + uint64(binary.LittleEndian.Uint32(data[4:]))
		case magic == lz4Magic && data[5]>>6&1 == 1: // code 4 to 7
			block = max(block, 64<<10<<(2*(data[5]>>4&3)))
			size = lz4FrameSize(data)
		default:
			return 2*lz4LegacyBlock + lz4BaseMemory
		}
		data = data[min(size, uint64(len(data))):]
	}
	return 2*block + lz4BaseMemory
}

// lz4FrameSize returns the size of the frame that data begins with.
func lz4FrameSize(data []byte) uint64 {
	flags := data[4]
	has := func(bit int) uint64 { return uint64(flags >> bit & 1) }
	at := 7 + 8*has(3) + 4*has(0) // content size, dictionary
	for at+4 <= uint64(len(data)) {
		size := binary.LittleEndian.Uint32(data[at:])
		at += 4
		if size == 0 {
			return at + 4*has(2) // checksum of the content
		}
		at += uint64(size&^(1<<31)) + 4*has(4) // checksum of the block
	}
	return uint64(len(data)) // incomplete
}

// xerialMagic begins snappy data in the framing of the Java client: the magic, two version numbers
// of four bytes each, then length-prefixed blocks.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeaderSize = 16

// snappyMemory returns the memory for the largest block, decompressed. It rejects blocks that claim more
// than they can contain, or that have too many bytes together.
func snappyMemory(compressed []byte) (int64, error) {
	framed := bytes.HasPrefix(compressed, xerialMagic)
	rest := compressed
	if framed {
		if len(compressed) < xerialHeaderSize {
			return 0, io.ErrUnexpectedEOF
		}
		rest = compressed[xerialHeaderSize:]
	}
	largest, total := 0, 0
	for first := !framed; first || len(rest) > 0; first = false {
		block, next, err := nextSnappyBlock(rest, framed)
		if err != nil {
			return 0, err
		}
		size, err := snappy.DecodedLen(block)
		if err != nil {
			return 0, err
		}
		if total += size; total > MaxDecompressedBytes {
			return 0, errDecompressedSize
		}
		if size > 64*len(block) { // more than snappy can expand
			return 0, snappy.ErrCorrupt
		}
		largest, rest = max(largest, size), next
	}
	return max(int64(largest), chunkBytes), nil
}

// nextSnappyBlock returns the first block of data and the bytes after it. Without framing all data is
// one block.
func nextSnappyBlock(data []byte, framed bool) (block, rest []byte, err error) {
	if !framed {
		return data, nil, nil
	}
	if len(data) < 4 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	size := uint64(binary.BigEndian.Uint32(data))
	data = data[4:]
	if size > uint64(len(data)) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return data[:size], data[size:], nil
}
