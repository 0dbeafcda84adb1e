package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"freshet/internal/base/atomicfile"
)

// A mark is the position of the last write that this member knows to be acknowledged by the log:
// as a standby because it has applied it, as the owner because it is about to acknowledge it to
// clients. A store cannot say this: it runs without a write-ahead log of its own, so a killed
// process loses what was not flushed. The mark is in a small file next to the store. It is
// written before a client gets its acknowledgement, so it survives the process; it is synced
// about once a second, so a power cut can set it back by that much, never forward.
//
// Epoch records are not marked, because no client waits for them. The file lists the last of
// them instead. They identify the ownerships whose writes the store contains (rebuild.go).

const (
	// MarkSuffix is what the name of the file has in addition to that of the store's directory.
	MarkSuffix = ".mark"
	markMagic  = "FMK1"
	// markEntryBytes is the size of one of the two copies of the mark, which are written in turn so
	// that one of them is always complete. markEntryOffset is the distance between them: they are in
	// different pages.
	markEntryBytes  = 512
	markEntryOffset = 4096
	// maxMarkEpochs is the number of epoch records that the file lists.
	maxMarkEpochs = 16
	markEpochLen  = 8 + 8 + 4
)

// epochMark is an epoch record that the store contains.
type epochMark struct {
	epoch, seq uint64
	sum        uint32
}

// mark is the mark of a copy. A nil mark records nothing.
type mark struct {
	path string

	mu     sync.Mutex // protects the following fields and the file; held over a write to the file
	file   *os.File   // nil until the first write
	turn   uint64     // number of writes
	at     logPosition
	epochs []epochMark // oldest first
	dirty  bool        // the file was written since the last sync
	err    error       // why the last write failed
}

// errDamagedMark means that a mark file has no complete copy of the mark.
var errDamagedMark = errors.New("file with the last acknowledged position is damaged")

// openMark reads a mark file. A file that does not exist is an empty mark. With errDamagedMark
// the mark is empty too, and usable.
func openMark(path string) (*mark, error) {
	m := &mark{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("reading the last acknowledged position: %w", err)
	}
	found := false
	for _, from := range []int{0, markEntryOffset} {
		if len(data) < from+markEntryBytes {
			continue
		}
		if s, ok := decodeMark(data[from : from+markEntryBytes]); ok && (!found || s.turn > m.turn) {
			found, m.turn, m.at, m.epochs = true, s.turn, s.at, s.epochs
		}
	}
	if !found {
		return m, fmt.Errorf("%w: %s", errDamagedMark, path)
	}
	return m, nil
}

// VerifyMark returns an error if a mark file has no complete copy of the mark.
func VerifyMark(path string) error {
	_, err := openMark(path)
	return err
}

// encode returns one copy of the mark:
//
//	magic [4], turn uint64, position, number of epochs uint8, epochs, zeros, CRC-32C uint32
func (m *mark) encode() []byte {
	b := append(make([]byte, 0, markEntryBytes), markMagic...)
	b = binary.BigEndian.AppendUint64(b, m.turn)
	b = append(b, m.at.encode()...)
	b = append(b, byte(len(m.epochs)))
	for _, e := range m.epochs {
		b = binary.BigEndian.AppendUint64(b, e.epoch)
		b = binary.BigEndian.AppendUint64(b, e.seq)
		b = binary.BigEndian.AppendUint32(b, e.sum)
	}
	b = b[:markEntryBytes-4]
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeMark(b []byte) (m *mark, ok bool) {
	body, sum := b[:markEntryBytes-4], binary.BigEndian.Uint32(b[markEntryBytes-4:])
	if string(body[:len(markMagic)]) != markMagic || crc32.Checksum(body, castagnoli) != sum {
		return nil, false
	}
	body = body[len(markMagic):]
	m = &mark{turn: binary.BigEndian.Uint64(body)}
	body = body[8:]
	var err error
	if m.at, err = decodeLogPosition(body[:logPositionLen]); err != nil {
		return nil, false
	}
	body = body[logPositionLen:]
	n := int(body[0])
	body = body[1:]
	if n > maxMarkEpochs {
		return nil, false
	}
	for range n {
		m.epochs = append(m.epochs, epochMark{
			epoch: binary.BigEndian.Uint64(body), seq: binary.BigEndian.Uint64(body[8:]),
			sum: binary.BigEndian.Uint32(body[16:]),
		})
		body = body[markEpochLen:]
	}
	return m, true
}

// advance records that the log has acknowledged everything up to a position. An older position
// than the mark changes nothing.
func (m *mark) advance(to logPosition) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !to.after(m.at) {
		return
	}
	if to.log != m.at.log {
		m.epochs = nil
	}
	m.at = to
	m.writeLocked()
}

// after reports whether a position is one of another log, or a later one of the same log. Both
// the sequence and the epoch of a log only grow. The epoch counts first, because the sequence
// begins again when an operator accepts that the log has lost its end.
func (m logPosition) after(other logPosition) bool {
	return m.log != other.log || m.epoch > other.epoch || m.epoch == other.epoch && m.seq > other.seq
}

// begin records that the store contains an epoch record.
func (m *mark) begin(at logPosition) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.log != at.log {
		m.at, m.epochs = logPosition{log: at.log}, nil
	}
	m.epochs = slices.DeleteFunc(m.epochs, func(e epochMark) bool { return e.epoch >= at.epoch })
	m.epochs = append(m.epochs, epochMark{epoch: at.epoch, seq: at.seq, sum: at.sum})
	if len(m.epochs) > maxMarkEpochs {
		m.epochs = slices.Delete(m.epochs, 0, len(m.epochs)-maxMarkEpochs)
	}
	m.writeLocked()
}

// reset replaces the mark with the position of a store that continues in another log.
func (m *mark) reset(at logPosition) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.epochs = at, nil
	m.writeLocked()
}

// position returns the last acknowledged position; its sequence is 0 when there is none.
func (m *mark) position() logPosition {
	if m == nil {
		return logPosition{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// epoch returns the epoch record with which an ownership began, if the file lists it.
func (m *mark) epoch(epoch uint64) (epochMark, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.epochs, func(e epochMark) bool { return e.epoch == epoch })
	if at < 0 {
		return epochMark{}, false
	}
	return m.epochs[at], true
}

// writeLocked writes the mark over the older one of its two copies. A failure does not keep the
// member from serving: the log has the write, and sync reports the failure.
func (m *mark) writeLocked() {
	m.turn++
	if m.file == nil {
		if m.err = m.createLocked(); m.err != nil {
			return
		}
	}
	_, m.err = m.file.WriteAt(m.encode(), int64(m.turn%2)*markEntryOffset)
	m.dirty = true
}

// createLocked opens the file, and creates it with its full size: later writes need no space.
func (m *mark) createLocked() error {
	if err := os.MkdirAll(filepath.Dir(m.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(m.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && info.Size() < markEntryOffset+markEntryBytes {
		if _, err = file.WriteAt(make([]byte, markEntryOffset+markEntryBytes), 0); err == nil {
			err = atomicfile.SyncDir(filepath.Dir(m.path))
		}
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	m.file = file
	return nil
}

// sync makes the mark durable. It returns the error of the last write, which the next one repeats.
func (m *mark) sync() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	file, err := m.file, m.err
	dirty := m.dirty
	m.dirty = false
	m.mu.Unlock()
	if err == nil && dirty && file != nil {
		err = file.Sync() // not with the lock: acknowledgements must not wait for the disk
	}
	if err != nil {
		return fmt.Errorf("writing the last acknowledged position to %s: %w", m.path, err)
	}
	return nil
}

// close syncs and closes the file. Nothing may be recorded afterwards.
func (m *mark) close() error {
	if m == nil {
		return nil
	}
	err := m.sync()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		err = errors.Join(err, m.file.Close())
		m.file = nil
	}
	return err
}
