package pebble

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
)

// reclaimer frees disk space. Pebble frees the space of a range delete when it compacts, but
// it does not compact for that reason: under little load, a deleted topic could keep its
// space forever. So the reclaimer counts deleted bytes and, when they are at least a quarter
// of the store, compacts the eras that contain them. mu protects the fields below it.
type reclaimer struct {
	e      *Engine
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	bytes   int64
	lo, hi  uint32 // eras with deleted bytes
	running bool
}

func (r *reclaimer) start(e *Engine) {
	r.e = e
	r.ctx, r.cancel = context.WithCancel(context.Background())
}

func (r *reclaimer) close() {
	r.cancel()
	r.wg.Wait()
}

// note counts bytes deleted in the eras [lo, hi].
func (r *reclaimer) note(bytes int64, lo, hi uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == 0 || lo < r.lo {
		r.lo = lo
	}
	r.hi = max(r.hi, hi)
	r.bytes += bytes
	if r.running || r.bytes < int64(r.e.opts.MemTableBytes)/4 || r.ctx.Err() != nil {
		return
	}
	r.running = true
	r.wg.Go(r.run)
}

// run compacts the eras when at least a quarter of the store is deleted.
func (r *reclaimer) run() {
	defer func() {
		r.mu.Lock()
		r.running = false
		r.mu.Unlock()
	}()
	used := int64(r.e.db.Metrics().DiskSpaceUsage())
	r.mu.Lock()
	bytes, lo, hi := r.bytes, r.lo, r.hi
	if bytes < used/4 {
		r.mu.Unlock()
		return
	}
	r.bytes, r.lo, r.hi = 0, 0, 0
	r.mu.Unlock()
	start := binary.BigEndian.AppendUint32([]byte{keyMessage}, lo)
	end := binary.BigEndian.AppendUint32([]byte{keyMessage}, hi)
	if err := r.e.db.Compact(r.ctx, start, after(end), false); err != nil && r.ctx.Err() == nil {
		r.e.log.Error("compaction to free disk space failed; retrying after further deletions", slog.Any("error", err))
	}
}

// noteFreedLocked counts bytes of messages in these eras as deleted once the commit batch is
// durable. The caller holds committer.mu.
func (t *topic) noteFreedLocked(g *commitBatch, bytes int64, eras []uint32) {
	if len(eras) == 0 || bytes == 0 {
		return
	}
	lo, hi := eras[0], eras[len(eras)-1]
	g.after = append(g.after, func() { t.e.reclaim.note(bytes, lo, hi) })
}
