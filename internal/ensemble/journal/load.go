package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"freshet/internal/base/framing"
	"freshet/internal/storage/engine"
)

// LoadSnapshot implements engine.Journal.
func (j *journal) LoadSnapshot(ctx context.Context) (uint64, io.ReadCloser, error) {
	call, leave, err := j.s.enter(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer leave()
	var p snapshotPointer
	err = withRetry(call, func(ctx context.Context) (err error) {
		p, err = j.latestSnapshot(ctx)
		return err
	})
	if err != nil {
		return 0, nil, j.wrapError(call, "loading the snapshot of", err)
	}
	if p.seq == 0 {
		return 0, nil, nil
	}
	return p.Position, j.readSnapshot(ctx, p), nil
}

// readSnapshot returns a reader of a snapshot. The caller must close it.
func (j *journal) readSnapshot(ctx context.Context, p snapshotPointer) *snapshotReader {
	reading, cancel := context.WithCancel(ctx)
	r := &snapshotReader{ctx: reading, cancel: cancel, j: j, p: p, next: 1, sum: sha256.New()}
	r.joined = framing.NewChunkReader(r.nextChunk)
	return r
}

// snapshotReader reads a snapshot in batches of chunks and verifies the checksum at the end.
type snapshotReader struct {
	ctx    context.Context // derived from the caller's; Close cancels it
	cancel context.CancelFunc
	j      *journal
	p      snapshotPointer
	next   uint64 // sequence of the next chunk, or of an earlier message
	chunks int
	bytes  int64
	sum    hash.Hash
	ready  []storedMessage
	joined *framing.ChunkReader
}

// Read implements io.Reader.
func (r *snapshotReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	return r.joined.Read(p)
}

// nextChunk returns the next chunk, and verifies the snapshot after the last one.
func (r *snapshotReader) nextChunk() ([]byte, error) {
	if r.chunks == r.p.Chunks {
		return nil, r.verify()
	}
	chunk, err := r.load()
	if err != nil {
		return nil, r.j.wrapError(r.ctx, "reading the snapshot of", err)
	}
	return chunk, nil
}

// verify returns io.EOF when the size and the checksum of the snapshot match.
func (r *snapshotReader) verify() error {
	if got := hex.EncodeToString(r.sum.Sum(nil)); r.bytes != r.p.Bytes || got != r.p.SHA256 {
		return &lossError{fmt.Sprintf("snapshot of journal %q at position %d has %d bytes with checksum %s, "+
			"want %d bytes with checksum %s", r.j.name, r.p.Position, r.bytes, got, r.p.Bytes, r.p.SHA256)}
	}
	return io.EOF
}

func (r *snapshotReader) load() ([]byte, error) {
	if len(r.ready) == 0 {
		ctx, leave, err := r.j.s.enter(r.ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		err = withRetry(ctx, func(ctx context.Context) (err error) {
			r.ready, err = r.j.s.getNearest(ctx, r.j.s.baseStream(), r.j.chunkSubject(r.p.ID), r.next)
			if errors.Is(err, errNoMessage) || hasAPICode(err, codeNoStream) {
				return r.missingChunkError(ctx)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	chunk := r.ready[0]
	r.ready = r.ready[1:]
	r.next = chunk.seq + 1
	r.chunks++
	r.bytes += int64(len(chunk.data))
	r.sum.Write(chunk.data)
	return chunk.data, nil
}

// missingChunkError returns why a chunk does not exist: ErrCompacted when a later snapshot replaced
// this one, else ErrCorrupt.
func (r *snapshotReader) missingChunkError(ctx context.Context) error {
	p, err := r.j.latestSnapshot(ctx)
	if err != nil {
		return err
	}
	if p.seq != r.p.seq {
		return engine.ErrCompacted
	}
	return &lossError{fmt.Sprintf("chunk %d of %d of the snapshot at position %d is missing", r.chunks+1, r.p.Chunks,
		r.p.Position)}
}

// Close cancels reading.
func (r *snapshotReader) Close() error {
	r.cancel()
	return nil
}
