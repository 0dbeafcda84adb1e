package journal

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
)

// A member's copy of a journal is one file: a header, the chunks of a snapshot, and the messages with
// the records after it. Each is a frame: length (4 bytes), CRC-32C of the rest (4 bytes), kind, content.
// The frame of a message begins with the link after its last record.
const (
	copyMagic     = "FRESHETJ1\n"
	frameHeader   = 8
	maxFrameBytes = 128 << 20

	frameStart   = 'h' // JSON of copyStart
	frameChunk   = 'c' // a part of the snapshot
	frameMessage = 'm' // link and message
)

// copyStart describes the snapshot with which a copy begins. A copy from the first record on has none.
type copyStart struct {
	Cluster  string `json:"cluster"`
	Journal  string `json:"journal"`
	Position uint64 `json:"position"`
	Sum      string `json:"sum"` // the link at Position
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256,omitempty"`
}

// copyState is what a copy contains.
type copyState struct {
	start copyStart
	base  link   // at start.Position
	end   uint64 // position of the last record
	link  link   // at end
	size  int64  // of the intact part of the file
}

// copyVisitor receives the content of a copy; nil functions are skipped.
type copyVisitor struct {
	start   func(copyStart) error
	chunk   func([]byte) error
	message func(m *message, before link) error
}

// errDamagedCopy means that a copy has a frame that is incomplete or does not verify.
var errDamagedCopy = errors.New("copy of the journal is damaged")

// errCutCopy means that the last frame of a copy is incomplete, as after a crash.
var errCutCopy = fmt.Errorf("%w: a frame is cut off", errDamagedCopy)

// CopySuffix is the end of the name of a file with a copy.
const CopySuffix = ".copy"

// VerifyCopy verifies the copy of a journal in a file that no process has open. It returns the position of
// its last record. A record that a crash has left incomplete at the end is no damage: the member fetches
// it again.
func VerifyCopy(path string) (position uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	state, err := scanCopy(f, copyVisitor{})
	if errors.Is(err, errCutCopy) && state.link.known() {
		err = nil
	}
	return state.end, err
}

// scanCopy reads and verifies a copy. It returns the state of the part before the first damage, and
// errDamagedCopy if there is one. state.end is meaningful only if the snapshot is complete, that is, if
// state.link is known.
func scanCopy(r io.Reader, v copyVisitor) (state copyState, err error) {
	in := bufio.NewReaderSize(r, 256<<10)
	magic := make([]byte, len(copyMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != copyMagic {
		return state, fmt.Errorf("%w: it has no header", errDamagedCopy)
	}
	s := copyScanner{copyVisitor: v, state: copyState{size: int64(len(magic))}, sum: sha256.New()}
	for {
		frame, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			if !s.state.link.known() {
				return s.state, fmt.Errorf("%w: its snapshot is incomplete", errDamagedCopy)
			}
			return s.state, nil
		}
		if err == nil {
			err = s.frame(frame)
		}
		if err != nil {
			return s.state, err
		}
		s.state.size += int64(frameHeader + len(frame))
	}
}

func readFrame(in io.Reader) ([]byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, errCutCopy
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > maxFrameBytes {
		return nil, fmt.Errorf("%w: a frame has %d bytes", errDamagedCopy, size)
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, errCutCopy
	}
	if crc32.Checksum(frame, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
		return nil, fmt.Errorf("%w: the checksum of a frame does not match", errDamagedCopy)
	}
	return frame, nil
}

type copyScanner struct {
	copyVisitor
	state copyState
	read  int64 // of the snapshot
	sum   hash.Hash
}

// frame verifies a frame and passes it on.
func (s *copyScanner) frame(frame []byte) error {
	content := frame[1:]
	switch kind := frame[0]; {
	case kind == frameStart && s.state.start.Journal == "":
		return s.begin(content)
	case kind == frameChunk && s.state.start.Journal != "" && s.read < s.state.start.Bytes:
		return s.add(content)
	case kind == frameMessage && s.state.link.known() && len(content) > linkBytes:
		return s.next(content)
	default:
		return fmt.Errorf("%w: a frame of kind %q is out of place", errDamagedCopy, kind)
	}
}

func (s *copyScanner) begin(content []byte) (err error) {
	start := &s.state.start
	if err := json.Unmarshal(content, start); err != nil || start.Journal == "" {
		return fmt.Errorf("%w: its header cannot be decoded", errDamagedCopy)
	}
	if s.state.base, err = parseLink(start.Sum); err != nil || !s.state.base.known() {
		return fmt.Errorf("%w: its header has no sum", errDamagedCopy)
	}
	if s.start != nil {
		if err := s.start(*start); err != nil {
			return err
		}
	}
	if start.Position == 0 {
		s.state.link = s.state.base
		return nil
	}
	return s.finishSnapshot()
}

func (s *copyScanner) add(content []byte) error {
	s.read += int64(len(content))
	s.sum.Write(content)
	if s.chunk != nil {
		if err := s.chunk(content); err != nil {
			return err
		}
	}
	return s.finishSnapshot()
}

// finishSnapshot verifies the snapshot when all of it was read.
func (s *copyScanner) finishSnapshot() error {
	start := &s.state.start
	if s.read < start.Bytes {
		return nil
	}
	if s.read > start.Bytes || hex.EncodeToString(s.sum.Sum(nil)) != start.SHA256 {
		return fmt.Errorf("%w: the checksum of its snapshot does not match", errDamagedCopy)
	}
	s.state.end, s.state.link = start.Position, s.state.base
	return nil
}

func (s *copyScanner) next(content []byte) error {
	m, err := decode(0, content[linkBytes:])
	if err != nil {
		return fmt.Errorf("%w: %w", errDamagedCopy, err)
	}
	if m.kind != kindRecords || m.first > s.state.end+1 || m.last() <= s.state.end {
		return fmt.Errorf("%w: records %d to %d follow position %d", errDamagedCopy, m.first, m.last(), s.state.end)
	}
	before := s.state.link
	after, err := m.afterPosition(before, s.state.end)
	if err != nil || after != decodeLink(content) {
		return fmt.Errorf("%w: the sum of records %d to %d does not match", errDamagedCopy, m.first, m.last())
	}
	if s.message != nil {
		if err := s.message(m, before); err != nil {
			return err
		}
	}
	s.state.end, s.state.link = m.last(), after
	return nil
}

// afterPosition is message.after for a message whose first records may be in a snapshot already: before
// is the link at position.
func (m *message) afterPosition(before link, position uint64) (link, error) {
	err := m.records(position, func(position uint64, record []byte) error {
		before = before.next(position, record)
		return nil
	})
	return before, err
}

// copyFile is a copy that is open for writing.
type copyFile struct {
	copyState
	path     string
	f        *os.File
	unsynced bool
}

// openCopy opens the copy at a path and cuts off an incomplete end: everything after the first damage.
// The error is errDamagedCopy when not even the snapshot can be used. torn says what was cut off, or nil.
func openCopy(path string) (c *copyFile, torn, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	state, torn := scanCopy(f, copyVisitor{})
	if torn != nil && (!errors.Is(torn, errDamagedCopy) || !state.link.known()) {
		return nil, nil, errors.Join(torn, f.Close())
	}
	if torn != nil {
		err = f.Truncate(state.size)
	}
	if err == nil {
		_, err = f.Seek(state.size, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &copyFile{copyState: state, path: path, f: f, unsynced: torn != nil}, torn, nil
}

// createCopy writes a new copy in place of an older one: the start, the snapshot, and the messages that
// rest returns. It appears under its name when it is complete and synced.
func createCopy(path string, start copyStart, chunks func(store func([]byte) error) error,
	rest func(c *copyFile) error,
) (_ *copyFile, err error) {
	temporary := path + ".new"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	c := &copyFile{path: path, f: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(temporary))
		}
	}()
	text, err := json.Marshal(start)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(copyMagic); err != nil {
		return nil, err
	}
	c.size = int64(len(copyMagic))
	if err := c.write(frameStart, text); err != nil {
		return nil, err
	}
	err = chunks(func(chunk []byte) error { return c.write(frameChunk, chunk) })
	if err != nil {
		return nil, err
	}
	c.start, c.end = start, start.Position
	if c.base, err = parseLink(start.Sum); err != nil {
		return nil, err
	}
	c.link = c.base
	if err := rest(c); err != nil {
		return nil, err
	}
	if err := c.sync(); err != nil {
		return nil, err
	}
	return c, atomicfile.Rename(temporary, path)
}

// add appends a message that continues the copy; its first records may be in the copy already.
func (c *copyFile) add(m *message) error {
	if m.first > c.end+1 || m.last() <= c.end {
		return fmt.Errorf("records %d to %d do not follow position %d", m.first, m.last(), c.end)
	}
	if m.first == c.end+1 && m.before.contradicts(c.link) {
		return &lossError{fmt.Sprintf("record at position %d has the predecessor %s, but the copy of this member "+
			"ends with %s", m.first, m.before, c.link)}
	}
	after, err := m.afterPosition(c.link, c.end)
	if err != nil {
		return err
	}
	if err := c.write(frameMessage, after.encode(nil), m.encode()); err != nil {
		return err
	}
	c.end, c.link = m.last(), after
	return nil
}

// write appends a frame. After an error the file must be opened again, which cuts off its end.
func (c *copyFile) write(kind byte, parts ...[]byte) error {
	frame := make([]byte, frameHeader, frameHeader+1)
	frame = append(frame, kind)
	for _, part := range parts {
		frame = append(frame, part...)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-frameHeader)) //nolint:gosec // bounded by the payload limit
	binary.BigEndian.PutUint32(frame[4:], crc32.Checksum(frame[frameHeader:], castagnoli))
	n, err := c.f.Write(frame)
	c.size += int64(n)
	c.unsynced = true
	return err
}

// sync makes everything durable that was written.
func (c *copyFile) sync() error {
	if !c.unsynced {
		return nil
	}
	if err := c.f.Sync(); err != nil {
		return err
	}
	c.unsynced = false
	return nil
}

func (c *copyFile) close() error { return c.f.Close() }

// encode encodes a message with records as it is stored.
func (m *message) encode() []byte {
	return seal(append(header(nil, m.kind, m.id, m.first, m.count), m.body...))
}
