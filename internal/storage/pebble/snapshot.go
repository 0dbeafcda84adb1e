package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/framing"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// snapshotChunk is the maximum size of a part of a snapshot that is stored as one value.
const snapshotChunk = 256 << 10

// snapshot identifies a journal's snapshot.
type snapshot struct {
	id       uint64
	position uint64
	chunks   uint32
}

func packSnapshot(s snapshot) []byte {
	var p wire.Writer
	p.Uvarint(s.id)
	p.Uvarint(s.position)
	p.Uvarint(uint64(s.chunks))
	return p
}

// restoreSnapshot reads the latest snapshot and the highest id that was used.
func (j *journal) restoreSnapshot() error {
	body, err := j.e.get(snapshotKey(j.id))
	if err == nil {
		u := unpack(body)
		j.snap = snapshot{id: u.Uvarint(), position: u.Uvarint(), chunks: uint32(u.Uvarint())}
		err = u.Err()
	}
	if err != nil && !errors.Is(err, cdb.ErrNotFound) {
		return err
	}
	j.lastID = j.snap.id
	last, err := j.e.lastKey(chunkKey(j.id, 0, 0), chunkKey(j.id+1, 0, 0))
	if last != nil { // possibly of a snapshot that a crash left incomplete
		j.lastID = max(j.lastID, binary.BigEndian.Uint64(last[5:]))
	}
	return err
}

// durableSnapshot returns the latest durable snapshot. It waits for a snapshot that is being
// installed, because the store may no longer show the records that this one replaces.
func (j *journal) durableSnapshot(ctx context.Context) (snapshot, error) {
	j.snapMu.Lock()
	saving := j.saving
	j.snapMu.Unlock()
	if saving != nil {
		if err := saving.wait(ctx); err != nil {
			return snapshot{}, err
		}
	}
	j.snapMu.Lock()
	defer j.snapMu.Unlock()
	return j.snap, nil
}

// SaveSnapshot implements engine.Journal.
func (j *journal) SaveSnapshot(ctx context.Context, position uint64, write func(io.Writer) error) error {
	if err := j.e.enter(ctx); err != nil {
		return err
	}
	defer j.e.leave()
	if err := j.e.checkRecordSpace(); err != nil {
		return err
	}
	j.saveMu.Lock()
	defer j.saveMu.Unlock()
	if end := j.end(); position > end {
		return fmt.Errorf("%w: snapshot of journal %q at position %d, but the journal ends at %d", engine.ErrInvalid,
			j.name, position, end)
	}
	current, err := j.durableSnapshot(ctx)
	if err != nil {
		return err
	}
	if position < current.position {
		return nil // another caller has saved a later state
	}
	j.lastID++
	w := &snapshotWriter{ctx: ctx, j: j, id: j.lastID}
	chunks := framing.NewChunkWriter(snapshotChunk, w.store)
	err = write(chunks)
	if err == nil {
		err = chunks.Flush()
	}
	if err != nil {
		j.discardLocked(w.id)
		return fmt.Errorf("saving a snapshot of journal %q: %w", j.name, err)
	}
	g, err := j.installLocked(snapshot{id: w.id, position: position, chunks: w.chunks})
	if err != nil {
		return err
	}
	return g.wait(ctx)
}

// installLocked makes a written snapshot the latest one, and deletes the previous snapshot and
// the records up to it. The caller holds saveMu.
func (j *journal) installLocked(s snapshot) (*commitBatch, error) {
	g, err := j.e.commit.lockBatch()
	if err != nil {
		return nil, err
	}
	defer j.e.commit.unlockAndCommit()
	g.setLocked(snapshotKey(j.id), packSnapshot(s))
	g.deleteRangeLocked(chunkKey(j.id, 0, 0), chunkKey(j.id, s.id, 0))
	g.deleteRangeLocked(recordKey(j.id, 0), recordKey(j.id, s.position+1))
	j.snapMu.Lock()
	j.saving = g
	j.snapMu.Unlock()
	g.after = append(g.after, func() {
		j.snapMu.Lock()
		defer j.snapMu.Unlock()
		j.snap = s
		if j.saving == g {
			j.saving = nil
		}
	})
	return g, nil
}

// discardLocked deletes the chunks of an incomplete snapshot. The caller holds saveMu.
func (j *journal) discardLocked(id uint64) {
	g, err := j.e.commit.lockBatch()
	if err != nil {
		return
	}
	defer j.e.commit.unlockAndCommit()
	g.deleteRangeLocked(chunkKey(j.id, id, 0), chunkKey(j.id, id+1, 0))
}

// snapshotWriter stores the chunks of a snapshot. They need not be durable before the key that
// refers to them, because that key comes later in the log.
type snapshotWriter struct {
	ctx    context.Context
	j      *journal
	id     uint64
	chunks uint32
}

func (w *snapshotWriter) store(chunk []byte) error {
	g, err := w.j.e.commit.lockWithCapacity(w.ctx, len(chunk)+64)
	if err != nil {
		return err
	}
	defer w.j.e.commit.unlockAndCommit()
	g.setLocked(chunkKey(w.j.id, w.id, w.chunks), chunk)
	w.chunks++
	return nil
}

// LoadSnapshot implements engine.Journal.
func (j *journal) LoadSnapshot(ctx context.Context) (uint64, io.ReadCloser, error) {
	if err := j.e.enter(ctx); err != nil {
		return 0, nil, err
	}
	// The view keeps the chunks readable when a later snapshot replaces them. When the
	// later snapshot was installed before the view was opened, try again.
	for {
		snap, err := j.durableSnapshot(ctx)
		if err != nil || snap.id == 0 {
			j.e.leave()
			return 0, nil, err
		}
		r := &snapshotReader{j: j, snap: snap, view: j.e.db.NewSnapshot()}
		r.chunks = framing.NewChunkReader(r.next)
		if again, err := j.durableSnapshot(ctx); err == nil && again == snap {
			return snap.position, r, nil
		}
		_ = r.view.Close()
	}
}

// snapshotReader reads a snapshot chunk by chunk. It counts as a call in progress until it
// is closed.
type snapshotReader struct {
	j      *journal
	snap   snapshot
	view   *cdb.Snapshot
	chunks *framing.ChunkReader
	chunk  uint32 // number of the next chunk
	body   []byte
	closed bool
}

func (r *snapshotReader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	return r.chunks.Read(p)
}

// next returns the next chunk.
func (r *snapshotReader) next() ([]byte, error) {
	if r.chunk == r.snap.chunks {
		return nil, io.EOF
	}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("reading the snapshot of journal %q: %w", r.j.name, err)
	}
	return r.body, nil
}

func (r *snapshotReader) load() error {
	key := chunkKey(r.j.id, r.snap.id, r.chunk)
	value, closer, err := r.view.Get(key)
	if errors.Is(err, cdb.ErrNotFound) {
		return r.j.e.recordStoreDamage(
			fmt.Errorf("%w: chunk %d of %d is missing", engine.ErrCorrupt, r.chunk, r.snap.chunks))
	}
	if err != nil {
		return r.j.e.recordStoreDamage(storeError(err))
	}
	defer closer.Close()
	body, err := checkChecksum(key, value)
	if err != nil {
		return r.j.e.recordStoreDamage(err)
	}
	r.body = append(r.body[:0], body...)
	r.chunk++
	return nil
}

// Close releases the snapshot.
func (r *snapshotReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	defer r.j.e.leave()
	return r.view.Close()
}
