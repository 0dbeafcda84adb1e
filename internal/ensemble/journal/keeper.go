package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

const (
	keepInterval    = time.Second     // between two writes to a copy
	publishInterval = 2 * time.Second // between two reports of a copy's position
	compactInterval = 10 * time.Second
	maxQueuedBytes  = 4 << 20
)

// keeper maintains this member's copy of a journal: the newest snapshot and all records after it. The
// stream stays the authority. A copy is written up to a second after the stream, synced, and only then
// reported in etcd, so a copy that ends before its reported position is damaged, and one that ends
// after it was cut off by a crash.
type keeper struct {
	g    *guarded
	path string

	queueMu sync.Mutex
	queue   []*message // messages that were read or written and are not in the copy; protected by queueMu
	queued  int        // their bytes; protected by queueMu

	end atomic.Uint64 // position up to which the copy has records, for offer

	mu          semaphore // held while the copy is written, also over network calls
	file        *copyFile // nil before the copy exists; protected by mu
	reported    Position  // as in etcd; protected by mu
	reportedAt  time.Time // protected by mu
	compactedAt time.Time // when the latest snapshot was last read; protected by mu
	warnings    *lograte.Limiter
}

// semaphore is a lock that is held over network calls. A goroutine that waits for it waits for a channel, so
// simulated time passes meanwhile.
type semaphore chan struct{}

// Lock waits until it has the lock.
func (s semaphore) Lock() { s <- struct{}{} }

// Unlock releases the lock.
func (s semaphore) Unlock() { <-s }

// copyPath returns the file of a journal's copy.
func copyPath(dir, name string) string { return filepath.Join(dir, encodeToken(name)+CopySuffix) }

func newKeeper(g *guarded) *keeper {
	return &keeper{
		g: g, path: copyPath(g.s.opts.Dir, g.name), mu: make(semaphore, 1),
		warnings: lograte.New(lograte.Policy{Interval: time.Minute, Forget: time.Minute}),
	}
}

// offer queues a message for the copy. A message that does not fit is read from the stream later.
func (k *keeper) offer(m *message) {
	if m.last() <= k.end.Load() {
		return
	}
	k.queueMu.Lock()
	defer k.queueMu.Unlock()
	if k.queued+len(m.body) > maxQueuedBytes {
		return
	}
	k.queue = append(k.queue, m)
	k.queued += len(m.body)
}

func (k *keeper) takeQueue() []*message {
	k.queueMu.Lock()
	defer k.queueMu.Unlock()
	queue := k.queue
	k.queue, k.queued = nil, 0
	return queue
}

func (k *keeper) part() string { return "journal " + k.g.s.opts.Prefix + "/" + k.g.name }

// open opens the copy. reported is its position in etcd. A damaged copy goes into quarantine and is
// made again.
func (k *keeper) open(reported Position, v streamValue) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reported = reported
	return k.openLocked(v)
}

func (k *keeper) openLocked(v streamValue) error {
	file, torn, err := openCopy(k.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && k.reported.Position == 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		k.damagedLocked(fmt.Errorf("copy is missing, but had the records up to position %d", k.reported.Position))
		return nil
	case errors.Is(err, errDamagedCopy):
		k.damagedLocked(err)
		return nil
	case err != nil:
		return fmt.Errorf("opening the copy of journal %q: %w", k.g.name, err)
	}
	k.file = file
	if torn != nil && file.end < k.reported.Position {
		k.damagedLocked(fmt.Errorf("%w after position %d of %d", torn, file.end, k.reported.Position))
		return nil
	}
	if file.end < k.reported.Position {
		k.damagedLocked(fmt.Errorf("copy ends at position %d, but had the records up to %d", file.end,
			k.reported.Position))
		return nil
	}
	k.matchLocked(v)
	if k.file != nil {
		k.g.s.opts.Integrity.Verified(k.part())
	}
	return nil
}

// matchLocked gives the copy up when it is a copy of an earlier stream and has records that the present
// one does not continue. The caller holds mu.
func (k *keeper) matchLocked(v streamValue) {
	if v.Position == 0 || k.reported.Stream == v.ID || k.file == nil || k.file.end <= v.Position {
		return
	}
	k.damagedLocked(fmt.Errorf("copy has records up to position %d, but the journal was rebuilt with those up to %d",
		k.file.end, v.Position))
}

// damagedLocked puts the copy into quarantine. The caller holds mu.
func (k *keeper) damagedLocked(cause error) {
	if k.file != nil {
		_ = k.file.close() // it is read by nobody
	}
	k.file = nil
	k.end.Store(0)
	k.g.s.opts.Integrity.Damaged(k.part(), k.path, cause)
	if err := k.g.s.opts.Integrity.Quarantine(k.part(), k.path, cause); err != nil {
		k.warn("moving a damaged copy into quarantine failed; it is overwritten", err)
	}
	if err := os.Remove(k.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.warn("removing a damaged copy failed", err)
	}
}

func (k *keeper) warn(what string, err error) {
	if ok, _ := k.warnings.Allow(what); ok {
		k.g.s.log.Warn(what, slog.String("journal", k.g.s.opts.Prefix+"/"+k.g.name), slog.Any("error", err))
	}
}

// run keeps the copy up to date until the journals are closed.
func (k *keeper) run() {
	ctx := k.g.s.ctx
	for ctx.Err() == nil {
		j, ok := k.g.healthy()
		if ok {
			err := k.sync(ctx, j, false)
			var loss *lossError
			switch {
			case errors.As(err, &loss):
				k.g.lose(j, loss)
			case err != nil && ctx.Err() == nil:
				k.warn("copy of a journal could not be written; retrying", err)
			}
		}
		if retry.Sleep(ctx, keepInterval) != nil {
			break
		}
		_, grown := j.knownTail()
		if k.current(j) {
			select {
			case <-grown:
			case <-j.retired:
			case <-time.After(compactInterval):
			case <-ctx.Done():
			}
		}
	}
	k.stop()
}

// current reports whether the copy has all records that are known.
func (k *keeper) current(j *journal) bool {
	tail, _ := j.knownTail()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file != nil && k.file.end >= tail.last && k.reported.Position == k.file.end
}

// stop writes the queue and closes the copy.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return
	}
	_ = k.drainLocked() // what is not written is read from the stream at the next start
	_ = k.file.sync()
	_ = k.file.close()
	k.file = nil
}

// sync writes the records that the copy lacks, makes them durable and reports the position. With final,
// it reports even if it did so just before, and continues as far as the stream can be read.
func (k *keeper) sync(ctx context.Context, j *journal, final bool) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil && k.g.s.ctx.Err() == nil {
		if err := k.beginLocked(ctx, j); err != nil {
			return err
		}
	}
	if k.file == nil {
		return engine.ErrClosed
	}
	err = k.growLocked(ctx, j)
	if err == nil && !final && time.Since(k.compactedAt) > compactInterval {
		err = k.compactLocked(ctx, j)
	}
	if k.file == nil {
		return err
	}
	k.end.Store(k.file.end)
	if syncErr := k.file.sync(); syncErr != nil {
		return errors.Join(err, k.reopenLocked(syncErr))
	}
	return errors.Join(err, k.reportLocked(ctx, j, final))
}

// growLocked appends the records that the copy lacks, from the queue or from the stream. The caller holds mu.
func (k *keeper) growLocked(ctx context.Context, j *journal) error {
	if err := k.drainLocked(); err != nil {
		return err
	}
	for {
		tail, _ := j.knownTail()
		if k.file.end >= tail.last {
			return nil
		}
		call, leave, err := k.g.s.enter(ctx)
		if err != nil {
			return err
		}
		batch, err := j.fetchBatch(call, k.file.end)
		leave()
		if errors.Is(err, engine.ErrCompacted) {
			return k.beginLocked(ctx, j)
		}
		if err != nil {
			return err
		}
		k.takeQueue() // contains the batch
		for _, m := range batch {
			if err := k.addLocked(m); err != nil {
				return err
			}
		}
	}
}

// drainLocked appends the queued messages that continue the copy. The caller holds mu.
func (k *keeper) drainLocked() error {
	for _, m := range k.takeQueue() {
		if m.last() <= k.file.end || m.first > k.file.end+1 {
			continue
		}
		if err := k.addLocked(m); err != nil {
			return err
		}
	}
	return nil
}

// addLocked appends a message. When it contradicts the copy although the stream was rebuilt up to there
// from what most members have, the copy is wrong. The caller holds mu.
func (k *keeper) addLocked(m *message) error {
	if k.file == nil {
		return nil
	}
	err := k.file.add(m)
	var loss *lossError
	switch {
	case errors.As(err, &loss) && m.first <= k.g.rebuiltTo()+1:
		k.damagedLocked(loss)
		return errors.New("copy contradicts the rebuilt journal and is made again")
	case err != nil && !errors.As(err, &loss):
		return k.reopenLocked(err)
	}
	return err
}

// reopenLocked opens the copy again after a failed write, which cuts off its end. The caller holds mu.
func (k *keeper) reopenLocked(cause error) error {
	if k.file != nil {
		_ = k.file.close()
		k.file = nil
	}
	return errors.Join(cause, k.openLocked(k.g.value()))
}

// beginLocked makes a new copy from the latest snapshot in the stream. The caller holds mu.
func (k *keeper) beginLocked(ctx context.Context, j *journal) error {
	position, start, chunks, err := k.snapshotOf(ctx, j)
	if err != nil {
		return err
	}
	file, err := createCopy(k.path, start, chunks, func(*copyFile) error { return nil })
	if err != nil {
		return fmt.Errorf("creating the copy of journal %q: %w", k.g.name, err)
	}
	if k.file != nil {
		_ = k.file.close()
	}
	k.file, k.compactedAt = file, time.Now()
	k.g.s.opts.Integrity.Healed(k.part())
	tail, _ := j.knownTail()
	if position >= tail.last {
		return nil
	}
	return k.growLocked(ctx, j)
}

// compactLocked replaces the copy by one that begins with a later snapshot, if there is one. The caller holds
// mu.
func (k *keeper) compactLocked(ctx context.Context, j *journal) error {
	k.compactedAt = time.Now()
	call, leave, err := k.g.s.enter(ctx)
	if err != nil {
		return err
	}
	p, err := j.latestSnapshot(call)
	leave()
	if err != nil || p.Position <= k.file.start.Position || p.Position > k.file.end {
		return err
	}
	position, start, chunks, err := k.snapshotOf(ctx, j)
	if err != nil {
		return err
	}
	file, err := createCopy(k.path, start, chunks, func(c *copyFile) error {
		from, err := os.Open(k.path)
		if err != nil {
			return err
		}
		_, err = scanCopy(from, copyVisitor{message: func(m *message, _ link) error {
			if m.last() <= position {
				return nil
			}
			m.before = link{} // the new copy may be of another chain
			return c.add(m)
		}})
		return errors.Join(err, from.Close())
	})
	if errors.Is(err, errDamagedCopy) {
		k.damagedLocked(err)
	}
	if err != nil {
		return fmt.Errorf("compacting the copy of journal %q: %w", k.g.name, err)
	}
	_ = k.file.close()
	k.file = file
	k.g.s.opts.Integrity.Verified(k.part())
	return nil
}

// snapshotOf returns the latest snapshot in the stream for a new copy.
func (k *keeper) snapshotOf(ctx context.Context, j *journal) (position uint64, start copyStart,
	chunks func(store func([]byte) error) error, err error,
) {
	call, leave, err := k.g.s.enter(ctx)
	if err != nil {
		return 0, start, nil, err
	}
	defer leave()
	var p snapshotPointer
	err = withRetry(call, func(ctx context.Context) (err error) {
		p, err = j.latestSnapshot(ctx)
		return err
	})
	if err != nil {
		return 0, start, nil, err
	}
	base, err := p.base()
	if err != nil {
		return 0, start, nil, err
	}
	start = copyStart{
		Cluster: k.g.s.opts.Prefix, Journal: k.g.name, Position: p.Position, Sum: base.String(), Bytes: p.Bytes,
		SHA256: p.SHA256,
	}
	if p.Position == 0 {
		return 0, start, func(func([]byte) error) error { return nil }, nil
	}
	return p.Position, start, func(store func([]byte) error) (err error) {
		r := j.readSnapshot(ctx, p)
		defer func() { err = errors.Join(err, r.Close()) }()
		sum, chunk := sha256.New(), make([]byte, snapshotChunk)
		for {
			n, err := io.ReadFull(r, chunk)
			if n > 0 {
				sum.Write(chunk[:n])
				if err := store(chunk[:n]); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
			return &lossError{fmt.Sprintf("snapshot at position %d does not have its checksum", p.Position)}
		}
		return nil
	}, nil
}

// reportLocked stores the copy's position in etcd, if it has changed. The caller holds mu, and the copy is
// synced.
func (k *keeper) reportLocked(ctx context.Context, j *journal, final bool) error {
	is := Position{Stream: j.id, Position: k.file.end, Sum: k.file.link.String()}
	if is == k.reported || !final && time.Since(k.reportedAt) < publishInterval {
		return nil
	}
	if err := k.g.registry.put(ctx, k.g.registry.memberKey(k.g.s.opts.Member), is); err != nil {
		return err
	}
	k.reported, k.reportedAt = is, time.Now()
	return nil
}

// report returns what the copy contains.
func (k *keeper) report() (r MemberReport) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != nil {
		r.Position, r.Sum, r.Base = k.file.end, k.file.link.String(), k.file.start.Position
	}
	return r
}
