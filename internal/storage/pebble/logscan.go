package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// Pebble's logs and manifests consist of blocks of 32 KiB, and a block of chunks:
//
//	checksum (4) | length (2) | kind (1) | log number (4) | synced up to (8) | data
//
// Chunks of manifests have no log number. Only the newest kind of chunk records the
// offset up to which the log was durable when the chunk was written.
//
// Pebble regards the first invalid chunk as the end of the log, as a crash leaves it, and
// looks for evidence of damage only in later blocks. So a damaged byte in the last block
// would silently truncate acknowledged writes. scanLog examines every byte after it.
const (
	logBlock     = 32 << 10
	legacyHeader = 7
	numberHeader = legacyHeader + 4
	syncedHeader = numberHeader + 8

	lastLegacyKind = 4
	lastNumberKind = 8
	lastSyncedKind = 12
)

// chunk is a decoded chunk of a log.
type chunk struct {
	header int
	end    int   // offset of the next chunk
	synced int64 // offset up to which the log was durable, -1 when the chunk has none
}

// scanLog returns ErrCorrupt when a log or manifest has a damaged chunk that a crash
// cannot have left. In a log, a later chunk proves this when it records that the log was
// durable beyond the damage; in a manifest, where every record is synced, any later chunk.
func scanLog(fs vfs.FS, path string) error {
	file, err := fs.Open(path)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	name := fs.PathBase(path)
	number, isLog := logNumber(name)
	bad := firstBad(data, number, isLog)
	for at := bad + 1; at+legacyHeader <= len(data); at++ {
		c, ok := chunkAt(data, at, number, isLog)
		if !ok {
			continue
		}
		if !isLog || c.synced > int64(bad) {
			return fmt.Errorf("%w: %s is damaged at byte %d", engine.ErrCorrupt, name, bad)
		}
		at = c.end - 1
	}
	return nil
}

// logNumber parses the number in the name of a log, such as 000012.log or 000012-001.log.
func logNumber(name string) (number uint32, isLog bool) {
	base, isLog := strings.CutSuffix(name, ".log")
	base, _, _ = strings.Cut(base, "-")
	n, err := strconv.ParseUint(base, 10, 64)
	return uint32(n), isLog && err == nil // chunks contain the low 32 bits
}

// firstBad returns the offset of the first invalid chunk.
func firstBad(data []byte, number uint32, isLog bool) int {
	at, header := 0, legacyHeader
	for {
		// No chunk begins where its header does not fit.
		if left := logBlock - at%logBlock; left < header {
			at += left
		}
		c, ok := chunkAt(data, at, number, isLog)
		if !ok {
			return at
		}
		at, header = c.end, c.header
	}
}

// chunkAt decodes the chunk at an offset and reports whether it is complete and valid.
func chunkAt(data []byte, at int, number uint32, isLog bool) (chunk, bool) {
	end := min(len(data), (at/logBlock+1)*logBlock)
	if at+legacyHeader > end {
		return chunk{}, false
	}
	kind, header := data[at+6], syncedHeader
	switch {
	case kind == 0 || kind > lastSyncedKind:
		return chunk{}, false
	case kind <= lastLegacyKind:
		header = legacyHeader
	case kind <= lastNumberKind:
		header = numberHeader
	}
	c := chunk{header: header, end: at + header + int(binary.LittleEndian.Uint16(data[at+4:])), synced: -1}
	if c.end > end || isLog != (header > legacyHeader) {
		return chunk{}, false
	}
	if header > legacyHeader && binary.LittleEndian.Uint32(data[at+7:]) != number {
		return chunk{}, false
	}
	sum := crc32.Checksum(data[at+6:c.end], castagnoli)
	if binary.LittleEndian.Uint32(data[at:]) != (sum>>15|sum<<17)+0xa282ead8 {
		return chunk{}, false
	}
	if header == syncedHeader {
		c.synced = int64(binary.LittleEndian.Uint64(data[at+numberHeader:]))
	}
	return c, true
}
