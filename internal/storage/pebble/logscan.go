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

// Pebble's logs and manifests are blocks of 32 KiB, and a block is chunks:
//
//	checksum (4) | length (2) | kind (1) | log number (4) | synced up to (8) | data
//
// Chunks of manifests have no log number, and only the newest kind of chunks
// says up to where the log was durable when it was written.
//
// Pebble takes the first chunk that does not fit for the end of the log, as a
// crash leaves it, and looks for a sign of the contrary only in later blocks. So
// a damaged byte in the last block would cut off acknowledged writes without a
// word. scanLog looks at every byte behind.
const (
	logBlock     = 32 << 10
	legacyHeader = 7
	numberHeader = legacyHeader + 4
	syncedHeader = numberHeader + 8

	lastLegacyKind = 4
	lastNumberKind = 8
	lastSyncedKind = 12
)

// chunk is a piece of a log.
type chunk struct {
	header int
	end    int   // where the next one starts
	synced int64 // up to where the log was durable, -1 when the chunk does not say
}

// scanLog returns ErrCorrupt when a log or manifest has a damaged chunk that a
// crash cannot have left: behind it is one that says the log was durable beyond,
// or, in a manifest, whose every record is synced, any other.
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

// logNumber reads the number out of a log's name, as 000012.log or 000012-001.log.
func logNumber(name string) (number uint32, isLog bool) {
	base, isLog := strings.CutSuffix(name, ".log")
	base, _, _ = strings.Cut(base, "-")
	n, err := strconv.ParseUint(base, 10, 64)
	return uint32(n), isLog && err == nil // chunks have the low half of it
}

// firstBad returns where the first chunk is that does not fit.
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

// chunkAt reads the chunk at a place, and says whether there is a whole one.
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
