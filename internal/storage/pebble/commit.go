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
	// groupsInFlight bounds the groups that are applied and not yet synced.
	// Pebble syncs all of them at once; who is not applied when a sync starts
	// has to wait for the next.
	groupsInFlight = 128
	// maxGroupBytes bounds the memory of the group being gathered; appends wait
	// for the next one when it is full.
	maxGroupBytes = 8 << 20
	// maxUnsynced bounds the memory of groups in flight.
	maxUnsynced = 32 << 20
	// maxRoomWait bounds that wait when the store cannot keep up.
	maxRoomWait = 10 * time.Second
)

// group is a set of writes that become durable together, atomically.
type group struct {
	batch    *cdb.Batch
	bytes    int
	slots    []slot
	sides    []sideWrite
	sideAt   map[string]int // where in sides a key is
	touched  []touch
	topics   []*topic
	journals []journalTouch
	after    []func()  // run in order once the group is durable
	place    Place     // in the log, when that is not Pebble's own
	writers  int       // who have added to it
	offered  time.Time // to a log that is not Pebble's own
	done     chan struct{}
	err      error // valid once done is closed
}

// touch is the end of a partition after the group.
type touch struct {
	part    *partition
	next    uint64
	cum     int64
	publish int64
}

type journalTouch struct {
	journal *journal
	last    uint64
}

// slot is a small value that may change many times while its group is gathered
// and is written once: a cursor's floor or a block of acknowledgements.
type slot struct {
	cancelled bool // write nothing
	klen      uint8
	vlen      uint8 // 0 deletes the key
	key       [cursorEntryKeyLen]byte
	val       [blockValueLen]byte
}

// pin keeps the topic loaded until the group has completed. The caller holds
// committer.mu, as for everything that is added to a group.
func (g *group) pin(t *topic) {
	if t.pinnedBy != g {
		t.pinnedBy = g
		t.pins.Add(1)
		g.topics = append(g.topics, t)
	}
}

func (g *group) set(key, body []byte) {
	// A batch only fails on an index, and ours have none.
	_ = g.batch.Set(key, addChecksum(key, body), nil)
	g.bytes += len(key) + len(body) + 16
}

func (g *group) delete(key []byte) { _ = g.batch.Delete(key, nil) }

func (g *group) deleteRange(start, end []byte) { _ = g.batch.DeleteRange(start, end, nil) }

// committer gathers writes into groups and makes them durable in order.
type committer struct {
	e   *Engine
	log Log // nil when the write-ahead log is Pebble's own

	mu       sync.Mutex
	cur      *group
	inFlight []*group
	unsynced int           // bytes of inFlight
	synced   sync.Cond     // unsynced has become less
	room     chan struct{} // closed when cur is swapped; nil while nobody waits
	woken    bool          // wakeup was sent to since cur was swapped
	err      error         // why nothing can be written any more
	gatherer               // for a log that is not Pebble's own

	applying sync.Mutex // held while a group is handed to Pebble, and to pause that

	wakeup  chan struct{}
	stop    chan struct{}
	tokens  chan struct{}
	syncing chan *group
	ended   sync.WaitGroup
}

func (c *committer) start(e *Engine) {
	c.e = e
	c.synced.L = &c.mu
	c.wakeup = make(chan struct{}, 1)
	c.stop = make(chan struct{})
	inFlight := groupsInFlight
	if c.log != nil {
		inFlight = loggedInFlight
		c.joined, c.most = make(chan struct{}, 1), maxLinger
	}
	c.tokens = make(chan struct{}, inFlight)
	c.syncing = make(chan *group, inFlight)
	c.cur = c.newGroup()
	c.ended.Add(2)
	go c.applyLoop()
	go c.syncLoop()
}

// close applies what is left and ends the two goroutines. After a failure they
// may never end, and nobody waits for them.
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

func (c *committer) newGroup() *group {
	return &group{
		batch: c.e.db.NewBatch(cdb.WithInitialSizeBytes(16<<10), cdb.WithMaxRetainedSizeBytes(maxGroupBytes)),
		done:  make(chan struct{}),
	}
}

// lockWithRoom locks committer.mu and returns the current group, waiting while it
// has no room for another need bytes. The caller adds to the group and then calls
// unlockAndCommit, or unlock when it added nothing. Never call it with a
// subscription's lock held: the groups before could need that lock to complete.
func (c *committer) lockWithRoom(ctx context.Context, need int) (*group, error) {
	var deadline *time.Timer
	for {
		c.mu.Lock()
		if c.err != nil {
			defer c.mu.Unlock()
			return nil, c.err
		}
		if c.cur.bytes == 0 || c.cur.bytes+need <= maxGroupBytes {
			return c.cur, nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		if deadline == nil {
			deadline = time.NewTimer(maxRoomWait)
			defer deadline.Stop()
		}
		select {
		case <-room:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, engine.ErrBusy
		}
	}
}

// lockGroup is lockWithRoom for small writes, which do not wait for room.
func (c *committer) lockGroup() (*group, error) {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	return c.cur, nil
}

// unlockAndCommit unlocks committer.mu after something was added to the group and
// sees to it that the group is applied.
func (c *committer) unlockAndCommit() {
	first := !c.woken
	c.woken = true
	if c.log != nil {
		c.joinLocked()
	}
	c.mu.Unlock()
	if first {
		c.wakeup <- struct{}{} // cap 1, and woken says it is empty
	}
}

// unlock unlocks committer.mu when nothing was added.
func (c *committer) unlock() { c.mu.Unlock() }

// wait returns once the group is durable. When ctx ends first the outcome is
// unknown to the caller, and most likely a success.
func (g *group) wait(ctx context.Context) error {
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

// durable says without waiting whether the group has completed well.
func (g *group) durable() bool {
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
		// Let those who are about to write join the group: without this, groups are
		// small when the disk is fast (BenchmarkAppend).
		runtime.Gosched()
		c.tokens <- struct{}{}
		if c.log != nil {
			c.gather()
		}
		c.mu.Lock()
		for c.unsynced > maxUnsynced && c.err == nil {
			c.synced.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		g := c.cur
		c.cur = c.newGroup()
		c.woken = false
		if c.room != nil {
			close(c.room)
			c.room = nil
		}
		c.inFlight = append(c.inFlight, g)
		c.unsynced += g.bytes
		c.mu.Unlock()

		if c.log != nil {
			c.offer(g)
		} else if err := c.apply(g); err != nil {
			c.e.fail(err)
			return
		}
		c.syncing <- g
	}
}

// apply hands the group to Pebble, which panics when its write-ahead log cannot
// be written, and swallows commit errors after it has told its logger.
func (c *committer) apply(g *group) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("apply a group of writes: %v", r)
		}
	}()
	c.applying.Lock()
	defer c.applying.Unlock()
	g.emit()
	if err := c.e.db.ApplyNoSyncWait(g.batch, cdb.Sync); err != nil {
		return fmt.Errorf("apply a group of writes: %w", err)
	}
	return c.e.fault()
}

// emit writes into the batch what was gathered beside it; the group gathers no
// more.
func (g *group) emit() {
	for i := range g.slots {
		g.slots[i].emit(g.batch)
	}
	g.emitSides()
}

// whilePaused runs do while nothing is written to the store. Callers go on adding
// to the current group. When Pebble's write-ahead log fails under do, it may never
// return; callers were told of the failure by then.
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

func (s *slot) emit(b *cdb.Batch) {
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
		if !c.settled(g) {
			<-c.tokens
			continue
		}
		c.complete(g)
		<-c.tokens
		_ = g.batch.Close()
	}
}

// settled waits until the group is durable and readable. It returns false when the
// engine has stopped.
func (c *committer) settled(g *group) bool {
	if c.log != nil {
		return c.applyLogged(g)
	}
	if err := g.batch.SyncWait(); err != nil {
		c.e.fail(fmt.Errorf("sync the write-ahead log: %w", err))
		return false
	}
	return c.e.fault() == nil
}

// complete publishes a durable group: first the watermarks, then the callers,
// then those who wait for messages.
func (c *committer) complete(g *group) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	if c.log != nil {
		c.learnLocked(g)
	}
	c.inFlight = c.inFlight[1:]
	c.unsynced -= g.bytes
	c.synced.Signal()
	for i := range g.touched {
		t := &g.touched[i]
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
	for i := range g.touched {
		g.touched[i].part.announce()
	}
	for _, t := range g.topics {
		t.release()
	}
	// Cursors and partitions still point here; let them keep little.
	g.slots, g.touched, g.topics, g.journals, g.after = nil, nil, nil, nil, nil
	g.sides, g.sideAt = nil, nil
}

// fail ends every group, now and for ever.
func (c *committer) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	c.synced.Broadcast()
	if c.cur != nil { // not yet while the store is being opened
		c.inFlight = append(c.inFlight, c.cur)
	}
	for _, g := range c.inFlight {
		g.err = why
		close(g.done)
	}
	c.inFlight = nil
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}
