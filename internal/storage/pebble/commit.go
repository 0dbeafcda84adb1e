package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

const (
	// maxInFlight limits the commit batches that are applied and not yet synced.
	// Pebble syncs all of them with one fsync; a batch that is not applied when a
	// sync starts has to wait for the next one.
	maxInFlight = 128
	// maxBatchBytes limits the size of the current batch; when it is full, appends
	// wait for the next one. With an external log the limit is maxLoggedBatchBytes.
	maxBatchBytes = 8 << 20
	// maxUnsyncedBytes limits the memory of the batches in flight.
	maxUnsyncedBytes = 32 << 20
	// capacityTimeout is how long an append waits for capacity in a batch before it
	// fails with ErrBusy.
	capacityTimeout = 10 * time.Second
)

// commitBatch is a commit batch: a set of writes that become durable atomically.
type commitBatch struct {
	batch          *cdb.Batch
	bytes          int
	coalesced      []coalescedWrite
	attributes     []attributeWrite
	attributeIndex map[string]int // index in attributes, by key
	partitions     []partitionEnd
	topics         []*topic
	journals       []journalEnd
	after          []func()  // called in order once the batch is durable
	logAppend      LogAppend // the append to an external log; nil without one
	writers        int       // callers that have added to it
	offeredAt      time.Time // when it was appended to an external log
	done           chan struct{}
	err            error // valid once done is closed
}

// partitionEnd is the end of a partition after the commit batch.
type partitionEnd struct {
	part    *partition
	next    uint64
	cum     int64
	publish int64
}

type journalEnd struct {
	journal *journal
	last    uint64
}

// coalescedWrite is a small value that may change many times while its commit batch is open and
// is written once: a cursor's floor or a block of acknowledgements.
type coalescedWrite struct {
	cancelled bool // write nothing
	klen      uint8
	vlen      uint8 // 0 deletes the key
	key       [cursorEntryKeyLen]byte
	val       [blockValueLen]byte
}

// pinLocked keeps the topic loaded until the batch has completed. The caller holds
// committer.mu, as for everything that is added to a batch.
func (g *commitBatch) pinLocked(t *topic) {
	if t.pinnedBy != g {
		t.pinnedBy = g
		t.pins.Add(1)
		g.topics = append(g.topics, t)
	}
}

func (g *commitBatch) setLocked(key, body []byte) {
	// A Pebble batch returns errors only when it is indexed, and ours are not.
	_ = g.batch.Set(key, addChecksum(key, body), nil)
	g.bytes += len(key) + len(body) + 16
}

func (g *commitBatch) deleteLocked(key []byte) { _ = g.batch.Delete(key, nil) }

func (g *commitBatch) deleteRangeLocked(start, end []byte) { _ = g.batch.DeleteRange(start, end, nil) }

// committer collects writes into commit batches and makes them durable in order.
type committer struct {
	e          *Engine
	log        Log // the external log; nil when Pebble writes its own
	batchLimit int // of the bytes of cur: maxBatchBytes or maxLoggedBatchBytes

	mu            sync.Mutex
	cur           *commitBatch
	inFlight      []*commitBatch
	unsyncedBytes int           // bytes of inFlight
	synced        sync.Cond     // signalled when unsyncedBytes decreases
	capacity      chan struct{} // closed when cur is swapped; nil while no append waits
	woken         bool          // wakeup was sent to since cur was swapped
	err           error         // why no more writes are possible
	lingerState                 // for an external log

	applying sync.Mutex // held while a batch is handed to Pebble, and to pause that

	wakeup  chan struct{}
	stop    chan struct{}
	tokens  chan struct{}
	syncing chan *commitBatch
	ended   sync.WaitGroup
}

func (c *committer) start(e *Engine) {
	c.e = e
	c.synced.L = &c.mu
	c.wakeup = make(chan struct{}, 1)
	c.stop = make(chan struct{})
	inFlight := maxInFlight
	c.batchLimit = maxBatchBytes
	if c.log != nil {
		inFlight, c.batchLimit = maxLoggedInFlight, maxLoggedBatchBytes
		c.joined, c.lingerLimit = make(chan struct{}, 1), maxLinger
	}
	c.tokens = make(chan struct{}, inFlight)
	c.syncing = make(chan *commitBatch, inFlight)
	c.cur = c.newBatch()
	c.ended.Add(2)
	go c.applyLoop()
	go c.syncLoop()
}

// close applies the current batch and ends the two goroutines. After a failure they
// may never end, so close does not wait for them.
func (c *committer) close() {
	close(c.stop)
	ended := make(chan struct{})
	go func() {
		c.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-c.e.store.failed:
	}
}

func (c *committer) newBatch() *commitBatch {
	return &commitBatch{
		batch: c.e.db.NewBatch(cdb.WithInitialSizeBytes(16<<10), cdb.WithMaxRetainedSizeBytes(c.batchLimit)),
		done:  make(chan struct{}),
	}
}

// lockWithCapacity locks committer.mu and returns the current batch, once it has capacity
// for another need bytes. The caller adds to the batch and then calls unlockAndCommit,
// or unlock when it added nothing. The caller must not hold a subscription's lock: the
// batches in flight may need that lock to complete.
func (c *committer) lockWithCapacity(ctx context.Context, need int) (*commitBatch, error) {
	var deadline *time.Timer
	for {
		c.mu.Lock()
		if c.err != nil {
			defer c.mu.Unlock()
			return nil, c.err
		}
		if c.cur.bytes == 0 || c.cur.bytes+need <= c.batchLimit {
			return c.cur, nil
		}
		if c.capacity == nil {
			c.capacity = make(chan struct{})
		}
		capacity := c.capacity
		c.mu.Unlock()
		if deadline == nil {
			deadline = time.NewTimer(capacityTimeout)
			defer deadline.Stop()
		}
		select {
		case <-capacity:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, engine.ErrBusy
		}
	}
}

// lockBatch is lockWithCapacity for small writes, which do not wait for capacity.
func (c *committer) lockBatch() (*commitBatch, error) {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	return c.cur, nil
}

// unlockAndCommit unlocks committer.mu after something was added to the current batch
// and makes sure that the batch is applied.
func (c *committer) unlockAndCommit() {
	first := !c.woken
	c.woken = true
	if c.log != nil {
		c.joinLocked()
	}
	c.mu.Unlock()
	if first {
		c.wakeup <- struct{}{} // never blocks: its capacity is 1, and woken was false
	}
}

// unlock unlocks committer.mu when nothing was added to the batch.
func (c *committer) unlock() { c.mu.Unlock() }

// wait returns once the batch is durable. When ctx ends first, the outcome is unknown to
// the caller; most likely the write succeeds.
func (g *commitBatch) wait(ctx context.Context) error {
	select {
	case <-g.done:
		return g.err
	default:
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// durable reports without waiting whether the batch has completed successfully.
func (g *commitBatch) durable() bool {
	select {
	case <-g.done:
		return g.err == nil
	default:
		return false
	}
}

func (c *committer) applyLoop() {
	defer c.ended.Done()
	defer close(c.syncing)
	for {
		stopping := false
		select {
		case <-c.wakeup:
		case <-c.stop:
			stopping = true
		}
		if stopping {
			select {
			case <-c.wakeup:
			default:
				return
			}
		}
		// Let goroutines that are about to write join the batch: without this, batches
		// are small when the disk is fast (BenchmarkAppend).
		runtime.Gosched()
		c.tokens <- struct{}{}
		if c.log != nil {
			c.linger()
		}
		c.mu.Lock()
		for c.unsyncedBytes > maxUnsyncedBytes && c.err == nil {
			c.synced.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		g := c.cur
		c.cur = c.newBatch()
		c.woken = false
		if c.capacity != nil {
			close(c.capacity)
			c.capacity = nil
		}
		c.inFlight = append(c.inFlight, g)
		c.unsyncedBytes += g.bytes
		c.mu.Unlock()

		if c.log != nil {
			c.appendToLog(g)
		} else if err := c.apply(g); err != nil {
			c.e.fail(err)
			return
		}
		c.syncing <- g
	}
}

// apply hands the batch to Pebble. Pebble panics when its write-ahead log cannot be
// written, and reports commit errors only to its logger.
func (c *committer) apply(g *commitBatch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("applying a commit batch: %v", r)
		}
	}()
	c.applying.Lock()
	defer c.applying.Unlock()
	g.emit()
	if err := c.e.db.ApplyNoSyncWait(g.batch, cdb.Sync); err != nil {
		return fmt.Errorf("applying a commit batch: %w", err)
	}
	return c.e.fault()
}

// emit writes the coalesced values and the attributes into the Pebble batch. Nothing may
// be added to the commit batch afterwards.
func (g *commitBatch) emit() {
	for i := range g.coalesced {
		g.coalesced[i].emit(g.batch)
	}
	g.emitAttributes()
}

// whilePaused calls do while nothing is written to the store. Callers continue to add to
// the current batch. When Pebble's write-ahead log fails during do, whilePaused may never
// return; the failure has been reported to the callers by then.
func (c *committer) whilePaused(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r) // as in apply
		}
	}()
	c.applying.Lock()
	defer c.applying.Unlock()
	if err := c.e.fault(); err != nil {
		return err
	}
	return do()
}

func (s *coalescedWrite) emit(b *cdb.Batch) {
	if s.cancelled {
		return
	}
	key := s.key[:s.klen]
	if s.vlen == 0 {
		_ = b.Delete(key, nil)
		return
	}
	op := b.SetDeferred(len(key), 4+int(s.vlen))
	copy(op.Key, key)
	copy(op.Value[4:], s.val[:s.vlen])
	sum := crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, op.Value[4:])
	binary.LittleEndian.PutUint32(op.Value, sum)
	_ = op.Finish()
}

func (c *committer) syncLoop() {
	defer c.ended.Done()
	for g := range c.syncing {
		if !c.awaitDurable(g) {
			<-c.tokens
			continue
		}
		c.complete(g)
		<-c.tokens
		_ = g.batch.Close()
		g.batch = nil // Pebble reuses it for another batch
	}
}

// awaitDurable waits until the batch is durable and readable. It returns false when the engine
// has stopped.
func (c *committer) awaitDurable(g *commitBatch) bool {
	if c.log != nil {
		return c.applyLogged(g)
	}
	if err := g.batch.SyncWait(); err != nil {
		c.e.fail(fmt.Errorf("syncing the write-ahead log: %w", err))
		return false
	}
	return c.e.fault() == nil
}

// complete publishes a durable batch: first the watermarks, then the functions in after,
// then the callers, then waiting consumers and readers.
func (c *committer) complete(g *commitBatch) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	if c.log != nil {
		c.observeLocked(g)
	}
	c.inFlight = c.inFlight[1:]
	c.unsyncedBytes -= g.bytes
	c.synced.Signal()
	for i := range g.partitions {
		t := &g.partitions[i]
		t.part.durableCum, t.part.durablePublish = t.cum, t.publish
		t.part.durable.Store(t.next)
	}
	for _, t := range g.journals {
		t.journal.advanceLocked(t.last)
	}
	c.mu.Unlock()
	for _, f := range g.after {
		f()
	}
	close(g.done)
	for i := range g.partitions {
		g.partitions[i].part.announce()
	}
	for _, t := range g.topics {
		t.release()
	}
	// Topics, partitions, subscriptions, cursors and journals still point to the batch, some of
	// them until they are unloaded; release its memory.
	g.coalesced, g.partitions, g.topics, g.journals, g.after = nil, nil, nil, nil, nil
	g.attributes, g.attributeIndex, g.logAppend = nil, nil, nil
}

// fail ends all batches with an error and rejects further writes.
func (c *committer) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = cause
	c.synced.Broadcast()
	if c.cur != nil { // nil while the store is being opened
		c.inFlight = append(c.inFlight, c.cur)
	}
	for _, g := range c.inFlight {
		g.err = cause
		close(g.done)
	}
	c.inFlight = nil
	if c.capacity != nil {
		close(c.capacity)
		c.capacity = nil
	}
}
