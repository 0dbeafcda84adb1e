package journal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"freshet/internal/base/framing"
	"freshet/internal/storage/engine"
)

const (
	snapshotChunk = 512 << 10
	cleanTimeout  = 10 * time.Second
)

// snapshotPointer identifies the latest snapshot and describes its chunks.
type snapshotPointer struct {
	ID       string `json:"id"`       // part of the subject of its chunks
	Position uint64 `json:"position"` // of the last record in it
	Sequence uint64 `json:"sequence"` // of the message with that record, or earlier with no record in between
	Chunks   int    `json:"chunks"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Previous uint64 `json:"previous"` // position of the previous snapshot, which is kept
	// Sum is the link at Position (link.go); "" when the writer did not know it.
	Sum string `json:"sum,omitempty"`

	seq uint64 // of the message that contains this pointer
}

func encodePointer(p snapshotPointer) ([]byte, error) { return json.Marshal(p) }

// latestSnapshot reads the pointer to the latest snapshot from the leader and notes it.
func (j *journal) latestSnapshot(ctx context.Context) (snapshotPointer, error) {
	found, err := j.get(ctx, getRequest{LastFor: j.snapshotSubject()})
	if err != nil && !errors.Is(err, errNoMessage) {
		return snapshotPointer{}, err
	}
	var p snapshotPointer
	if err == nil {
		m, err := decode(found.seq, found.data)
		if err != nil {
			return snapshotPointer{}, lossOf(err)
		}
		if err := json.Unmarshal(m.body, &p); err != nil {
			return snapshotPointer{}, fmt.Errorf("%w: decoding the snapshot pointer in message %d of journal %q: %w",
				engine.ErrCorrupt, m.seq, j.name, err)
		}
		p.seq = m.seq
		if err := j.noteBase(&p); err != nil {
			return snapshotPointer{}, err
		}
	}
	return j.observeSnapshot(p), nil
}

// noteBase caches the link at the position of a snapshot, unless it is known from the records.
func (j *journal) noteBase(p *snapshotPointer) error {
	base, err := p.base()
	if err != nil {
		return lossOf(err)
	}
	known := j.links.get(p.Position)
	if known.contradicts(base) {
		return &lossError{fmt.Sprintf("snapshot at position %d has the sum %s, but the records up to it have %s",
			p.Position, base, known)}
	}
	if !known.known() {
		j.links.put(p.Position, base)
	}
	return nil
}

// observeSnapshot caches a durable snapshot's pointer and returns the latest known one.
func (j *journal) observeSnapshot(p snapshotPointer) snapshotPointer {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.seq > j.snap.seq {
		j.snap = p
	}
	return j.snap
}

func (j *journal) chunkSubject(id string) string {
	return snapshotSubjects + encodeToken(j.s.opts.Prefix) + "." + encodeToken(j.name) + "." + id
}

// SaveSnapshot implements engine.Journal.
func (j *journal) SaveSnapshot(ctx context.Context, position uint64, write func(io.Writer) error) error {
	parent := ctx
	ctx, leave, err := j.s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	select {
	case j.saving <- struct{}{}:
		defer func() { <-j.saving }()
	case <-ctx.Done():
		return j.wrapError(ctx, "saving a snapshot of", context.Cause(ctx))
	}
	seq, current, err := j.prepareSnapshot(ctx, position)
	if err != nil || position < current.Position {
		return j.saveError(ctx, err) // err is nil when a later snapshot exists
	}
	w := newSnapshotWriter(parent, j, snapshotPointer{
		ID: snapshotID(position), Position: position, Sequence: seq, Sum: j.links.get(position).String(),
	})
	chunks := framing.NewChunkWriter(snapshotChunk, w.store)
	err = write(chunks)
	if err == nil {
		err = chunks.Flush()
	}
	maybe := false
	if err == nil {
		maybe, err = j.installSnapshot(parent, w.finish())
	}
	if err != nil {
		if !maybe {
			j.discardChunks(w.p.ID)
		}
		return j.wrapError(parent, "saving a snapshot of", err)
	}
	return nil
}

func (j *journal) saveError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return j.wrapError(ctx, "saving a snapshot of", err)
}

// prepareSnapshot returns the sequence of the message with a position, and the latest snapshot.
func (j *journal) prepareSnapshot(ctx context.Context,
	position uint64,
) (seq uint64, current snapshotPointer, err error) {
	err = withRetry(ctx, func(ctx context.Context) error {
		if tail, _ := j.knownTail(); position > tail.last {
			if err := j.barrier(ctx); err != nil {
				return err
			}
		}
		if tail, _ := j.knownTail(); position > tail.last {
			return fmt.Errorf("%w: snapshot position %d is past the end of the journal, %d", engine.ErrInvalid,
				position, tail.last)
		}
		if current, err = j.latestSnapshot(ctx); err != nil || position < current.Position {
			return err
		}
		if seq = current.Sequence; position > current.Position {
			seq, err = j.sequenceOf(ctx, position)
		}
		return err
	})
	return seq, current, err
}

// snapshotID begins with the position, so that outdated chunks can be found by subject.
func snapshotID(position uint64) string {
	return strconv.FormatUint(position, 10) + "-" + rand.Text()
}

// installSnapshot makes a snapshot whose chunks are durable the latest one, and removes what it
// replaces. When it returns an error and maybe is true, the snapshot may have become
// the latest one. Its chunks must stay then, because the journal's state would be lost
// without them. If it is not the latest one, a later snapshot removes its chunks.
func (j *journal) installSnapshot(ctx context.Context, p snapshotPointer) (maybe bool, err error) {
	ctx, leave, err := j.lockAppending(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	errLater := errors.New("later snapshot exists")
	seq, err := j.commitLocked(ctx, j.snapshotSubject(), func(id [idBytes]byte, tail indexEntry) ([]byte, error) {
		var current snapshotPointer
		err := withRetry(ctx, func(ctx context.Context) (err error) {
			current, err = j.latestSnapshot(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		if current.Position > p.Position {
			return nil, errLater
		}
		p.Previous = current.Position
		body, err := encodePointer(p)
		if err != nil {
			return nil, err
		}
		maybe = true
		return encodeSnapshot(id, tail.last+1, body), nil
	})
	if errors.Is(err, errLater) {
		j.discardChunks(p.ID)
		return false, nil
	}
	if err != nil {
		return maybe, err
	}
	p.seq = seq
	j.observeSnapshot(p)
	j.purgeReplaced(ctx, p)
	return false, nil
}

// purgeReplaced removes messages and chunks that a snapshot has replaced. It ignores errors,
// because the next snapshot removes the rest.
func (j *journal) purgeReplaced(ctx context.Context, p snapshotPointer) {
	before := p.Sequence
	if m, err := j.readMessage(ctx, p.Sequence); err == nil && m.last() <= p.Position {
		before++
	}
	if before > 1 {
		_ = j.s.purge(ctx, j.stream, purgeRequest{Filter: j.recordSubject(), Sequence: before})
	}
	_ = j.s.purge(ctx, j.stream, purgeRequest{Filter: j.snapshotSubject(), Sequence: p.seq})
	info, err := j.s.info(ctx, j.s.baseStream(), j.chunkSubject("*"))
	if err != nil {
		return
	}
	for subject := range info.State.Subjects {
		id := subject[strings.LastIndexByte(subject, '.')+1:]
		position, _, _ := strings.Cut(id, "-")
		// A snapshot before the previous one can never become the latest, even if a member
		// is still writing it.
		if n, err := strconv.ParseUint(position, 10, 64); err == nil && n < p.Previous && id != p.ID {
			_ = j.s.purge(ctx, j.s.baseStream(), purgeRequest{Filter: subject})
		}
	}
}

// discardChunks removes the chunks of a snapshot that was not installed.
func (j *journal) discardChunks(id string) {
	ctx, cancel := context.WithTimeout(j.s.ctx, cleanTimeout)
	defer cancel()
	_ = j.s.purge(ctx, j.s.baseStream(), purgeRequest{Filter: j.chunkSubject(id)}) // a later snapshot removes the rest
}

// snapshotWriter publishes the chunks of a snapshot.
type snapshotWriter struct {
	ctx context.Context
	j   *journal
	p   snapshotPointer
	sum hash.Hash
}

func newSnapshotWriter(ctx context.Context, j *journal, p snapshotPointer) *snapshotWriter {
	return &snapshotWriter{ctx: ctx, j: j, p: p, sum: sha256.New()}
}

// store publishes a chunk. The server deduplicates retries by the message id.
func (w *snapshotWriter) store(chunk []byte) error {
	ctx, leave, err := w.j.s.enter(w.ctx)
	if err != nil {
		return err
	}
	defer leave()
	msg := nats.NewMsg(w.j.chunkSubject(w.p.ID))
	msg.Data = chunk
	msg.Header.Set(nats.MsgIdHdr, w.p.ID+"/"+strconv.Itoa(w.p.Chunks))
	err = withRetry(ctx, func(ctx context.Context) error {
		err := w.j.s.publish(ctx, msg)
		if isStorageFull(err) {
			return fmt.Errorf("%w: %w", engine.ErrDiskFull, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	w.sum.Write(chunk)
	w.p.Chunks++
	w.p.Bytes += int64(len(chunk))
	return nil
}

func (w *snapshotWriter) finish() snapshotPointer {
	w.p.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	return w.p
}
