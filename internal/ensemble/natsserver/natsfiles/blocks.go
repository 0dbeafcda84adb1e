package natsfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"
)

const (
	blocksDir    = "msgs"
	newBlocksDir = "__new_msgs__" // holds the only block of a log during a purge
	blockSuffix  = ".blk"
	indexFile    = "index.db"

	headerBytes  = 22 // length 4, sequence 8, time 8, length of the subject 2
	sumBytes     = 8
	recordBytes  = headerBytes + sumBytes // of an empty record
	maxRecord    = 32 << 20
	withHeaders  = 1 << 31 // in the length
	erasedRecord = 1 << 63 // in the sequence
	tombstone    = 1 << 62 // in the sequence
	minIndex     = 32      // bytes of an index
	indexMagic   = 11      // first byte of an index
	indexVersion = 4       // second byte of an index
	resyncWindow = 1 << 20 // sequences that a record after a damaged one can have skipped
)

// compressedBlock is how a compressed block begins. Freshet compresses no streams.
var compressedBlock = []byte("cmp")

// The first and the last bytes of the headers of a message.
var headersBegin, headersEnd = []byte("NATS/1.0"), []byte("\r\n\r\n")

// logFiles is what the blocks of a log contain.
type logFiles struct {
	first, last uint64 // sequences of records; zero without one
	base        uint64 // the last sequence before the first record, as far as the blocks show
	records     int
	shifted     bool // the blocks begin with a mark
	gaps        []gap
	indexed     uint64 // the first sequence that the index knows; zero without an intact index
}

// begin returns the last sequence that the log does not have any more. The blocks can still contain records
// that were removed: a block is rewritten only when enough of it is unused, and the index alone shows which
// records count. An index that does not fit the blocks is older than they are, and shows nothing.
func (l *logFiles) begin() uint64 {
	if l.records > 0 && l.indexed > l.first && l.indexed <= l.last+1 {
		return max(l.base, l.indexed-1)
	}
	return l.base
}

// gap is a range of sequences without a record, both ends included.
type gap struct{ from, to uint64 }

// maxGaps bounds the gaps that are collected for a log.
const maxGaps = 1000

// record is a record of a block.
type record struct {
	seq     uint64
	mark    bool // an erased record or a tombstone: it has a sequence and no content
	content []byte
	length  int
}

// digest returns the hash with the key that nats-server derives from a name.
func digest(name string) *highwayhash.Digest64 {
	key := sha256.Sum256([]byte(name))
	h, _ := highwayhash.NewDigest64(key[:]) // fails only for keys of another length
	return h
}

func sum(h *highwayhash.Digest64, data []byte) []byte {
	h.Reset()
	_, _ = h.Write(data)
	return h.Sum(nil)
}

// blocks verifies the blocks and the index of a log and calls do with each record. strict is set for a
// log in which no sequence can be missing.
func (v *verifier) blocks(path, name string, strict bool, do func(record)) (logFiles, error) {
	raft := v.owner.group != ""
	var log logFiles
	dir := filepath.Join(path, blocksDir)
	if pending, err := v.indices(filepath.Join(path, newBlocksDir)); err != nil {
		return log, err
	} else if len(pending) > 0 {
		dir = filepath.Join(path, newBlocksDir) // nats-server continues the purge
	} else if log.indexed, err = v.index(filepath.Join(dir, indexFile), name); err != nil {
		return log, err
	}
	numbers, err := v.indices(dir)
	if err != nil {
		return log, err
	}
	for i, number := range numbers {
		last := i == len(numbers)-1
		if v.Sealed && last {
			break
		}
		file := filepath.Join(dir, strconv.FormatUint(uint64(number), 10)+blockSuffix)
		err := v.twice(func() error {
			data, exists, err := v.read(file)
			if exists && !bytes.HasPrefix(data, compressedBlock) {
				hash := digest(fmt.Sprintf("%s-%d", name, number))
				b := block{v: v, file: file, hash: hash, last: last, strict: strict, raft: raft}
				b.scan(data, &log, do)
			}
			return err
		})
		if err != nil {
			return log, err
		}
	}
	return log, nil
}

// indices returns the numbers of the blocks in a directory in ascending order.
func (v *verifier) indices(dir string) ([]uint32, error) {
	entries, err := os.ReadDir(filepath.Join(v.dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var numbers []uint32
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), blockSuffix); ok {
			if n, err := strconv.ParseUint(name, 10, 32); err == nil {
				numbers = append(numbers, uint32(n))
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// index verifies the index of a log, which need not exist, and returns the first sequence that it knows.
func (v *verifier) index(file, name string) (first uint64, err error) {
	if v.Sealed {
		return 0, nil
	}
	data, exists, err := v.read(file)
	if err != nil || !exists {
		return 0, err
	}
	if n := len(data) - sumBytes; n < minIndex-sumBytes || !bytes.Equal(sum(digest(name), data[:n]), data[n:]) {
		v.findDerived(file, "index does not match its checksum")
		return 0, nil
	}
	if data[0] != indexMagic || data[1] > indexVersion {
		return 0, nil // another version of nats-server wrote it
	}
	data = data[2:]
	for range 3 { // the number of messages, their bytes, the first sequence
		value, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, nil
		}
		first, data = value, data[n:]
	}
	return first, nil
}

// block is a block of a log while it is verified.
type block struct {
	v      *verifier
	file   string
	hash   *highwayhash.Digest64
	last   bool // the last block of its log
	strict bool
	raft   bool // of the log of a Raft group, whose records have no subject
}

// scan verifies the records of a block.
func (b *block) scan(data []byte, log *logFiles, do func(record)) {
	for at := 0; at < len(data); {
		r, state := b.record(data[at:])
		if state != intact {
			b.stop(data[at:], at, state, max(log.last, log.base))
			return
		}
		at += r.length
		before := max(log.last, log.base)
		switch {
		case r.mark && log.records == 0:
			log.base, log.shifted = max(log.base, r.seq), true
			continue
		case r.mark:
			log.last = max(log.last, r.seq)
			continue
		case log.records == 0:
			log.first = r.seq
			log.base = max(log.base, r.seq-1)
		case b.strict && r.seq > before+1:
			b.v.find(b.file, "records %d to %d are missing before this block or in it", before+1, r.seq-1)
		case r.seq > before+1 && len(log.gaps) < maxGaps:
			log.gaps = append(log.gaps, gap{before + 1, r.seq - 1})
		}
		log.records++
		log.last = max(log.last, r.seq)
		do(r)
	}
}

// state is what is at an offset of a block.
type state int

const (
	intact     state = iota
	incomplete       // the block ends before the record
	wrongSum         // the record is complete and does not match its checksum
	impossible       // nothing that the server writes
)

// record reads the record at the beginning of data.
func (b *block) record(data []byte) (record, state) {
	if len(data) < headerBytes {
		return record{}, incomplete
	}
	word := binary.LittleEndian.Uint32(data)
	length, subject := int(word&^withHeaders), int(binary.LittleEndian.Uint16(data[20:]))
	prefix := subject
	if word&withHeaders != 0 {
		prefix += 4
	}
	if length < recordBytes || length > maxRecord || prefix > length-recordBytes {
		return record{}, impossible
	}
	if length > len(data) {
		return record{length: length}, incomplete
	}
	body := data[headerBytes : length-sumBytes]
	b.hash.Reset()
	_, _ = b.hash.Write(data[4:20])
	_, _ = b.hash.Write(body[:subject])
	_, _ = b.hash.Write(body[prefix:])
	var got [sumBytes]byte
	if !bytes.Equal(b.hash.Sum(got[:0]), data[length-sumBytes:length]) || !b.isFramed(body, subject, prefix) {
		return record{length: length}, wrongSum
	}
	seq := binary.LittleEndian.Uint64(data[4:])
	return record{
		seq: seq &^ (erasedRecord | tombstone), mark: seq&(erasedRecord|tombstone) != 0,
		content: body[subject:], length: length,
	}, intact
}

// isFramed reports whether the lengths of the subject and of the headers, which the checksum does not cover,
// are what the server writes. In a record with headers the checksum does depend on the length of the subject.
func (b *block) isFramed(body []byte, subject, prefix int) bool {
	if prefix == subject {
		return subject == 0 || !b.raft
	}
	rest := body[prefix:]
	headers := uint64(binary.LittleEndian.Uint32(body[subject:]))
	return headers <= uint64(len(rest)) && bytes.HasPrefix(rest, headersBegin) &&
		bytes.HasSuffix(rest[:headers], headersEnd)
}

// stop judges the rest of a block that does not begin with an intact record.
func (b *block) stop(rest []byte, at int, found state, last uint64) {
	if b.last && !b.v.Stopped && b.torn(rest, found, last) {
		return
	}
	switch found {
	case incomplete:
		b.v.find(b.file, "ends in the middle of a record at byte %d", at)
	case wrongSum:
		b.v.find(b.file, "record at byte %d does not match its checksum", at)
	default:
		b.v.find(b.file, "no record begins at byte %d, where one should", at)
	}
}

// torn reports whether a kill or a power cut can have left the rest of the last block: an incomplete
// write, or bytes that the file system has allocated and not written.
func (b *block) torn(rest []byte, found state, last uint64) bool {
	zeros := len(rest) - len(bytes.TrimRight(rest, "\x00"))
	if zeros < sumBytes && found != incomplete {
		return false
	}
	return !b.continues(rest, last)
}

// continues reports whether an intact record begins somewhere in the rest of a block. Then the damage is
// in the middle of what was written.
func (b *block) continues(rest []byte, last uint64) bool {
	for at := 1; at+recordBytes <= len(rest); at++ {
		seq := binary.LittleEndian.Uint64(rest[at+4:]) &^ (erasedRecord | tombstone)
		if seq <= last || seq-last > resyncWindow {
			continue
		}
		if _, state := b.record(rest[at:]); state == intact {
			return true
		}
	}
	return false
}

// readFull reads until data is full or the file ends.
func readFull(f io.Reader, data []byte) (int, error) {
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
