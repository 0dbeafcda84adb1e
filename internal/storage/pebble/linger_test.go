package pebble

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// heldLog is a log that acknowledges a batch when the test allows it.
type heldLog struct {
	appended chan int      // number of messages of each appended batch
	release  chan struct{} // each value lets the log acknowledge one batch
	position uint64        // used only by the goroutine that calls Wait
	crowded  atomic.Bool
}

// heldMessage is part of every message of these tests, and of nothing else.
var heldMessage = []byte("held message")

func (l *heldLog) Append(batch []byte) LogAppend {
	l.appended <- bytes.Count(batch, heldMessage)
	return l
}

func (l *heldLog) Wait() ([]byte, error) {
	<-l.release
	l.position++
	return encodeLogPosition(int(l.position)), nil
}

func (*heldLog) Live() bool                     { return true }
func (*heldLog) Full() (messages, records bool) { return false, false }
func (l *heldLog) Crowded() bool                { return l.crowded.Load() }

// lingerTest is a test with an engine on a heldLog and a topic.
type lingerTest struct {
	*testing.T
	e       *Engine
	log     *heldLog
	writing sync.WaitGroup
}

func newLingerTest(t *testing.T) *lingerTest {
	t.Helper()
	store, err := OpenStore("store", Options{FS: vfs.NewMem()})
	must(t, err)
	g := &lingerTest{T: t, log: &heldLog{appended: make(chan int), release: make(chan struct{})}}
	opened := make(chan struct{})
	go func() { // acknowledges the batches of opening the engine and creating the topic
		for {
			select {
			case <-g.log.appended:
				g.log.release <- struct{}{}
			case <-opened:
				return
			}
		}
	}()
	g.e, err = store.Open(g.log)
	must(t, err)
	must(t, g.e.CreateTopic(t.Context(), 1, engine.TopicConfig{Partitions: 1}))
	opened <- struct{}{}
	t.Cleanup(func() {
		g.writing.Wait()
		must(t, g.e.Close())
		must(t, store.Close())
	})
	return g
}

// write appends a message of at least size bytes in the background.
func (g *lingerTest) write(size int) {
	g.writing.Go(func() {
		payload := append(bytes.Clone(heldMessage), make([]byte, size)...)
		if _, err := g.e.Append(context.WithoutCancel(g.Context()), 1, 0,
			[]engine.Message{{Payload: payload}}); err != nil {
			g.Errorf("append: got error %v, want none", err)
		}
	})
}

// awaitWriters returns when a number of writers have joined the current batch.
func (g *lingerTest) awaitWriters(writers int) {
	for joined := false; !joined; runtime.Gosched() {
		g.e.commit.mu.Lock()
		joined = g.e.commit.cur.writers == writers
		g.e.commit.mu.Unlock()
	}
}

// setLinger sets how long a batch waits for writers.
func (g *lingerTest) setLinger(d time.Duration) {
	g.e.commit.mu.Lock()
	defer g.e.commit.mu.Unlock()
	g.e.commit.lingerLimit, g.e.commit.logLatency = d, lingerDivisor*d
}

func (g *lingerTest) wantBatch(messages int) {
	g.Helper()
	if got := <-g.log.appended; got != messages {
		g.Errorf("got a batch of %d messages, want %d", got, messages)
	}
}

// TestWritersShareABatch has writers arrive while a batch is in flight: they share one batch.
func TestWritersShareABatch(t *testing.T) {
	t.Parallel()
	g := newLingerTest(t)
	g.setLinger(0)
	g.write(0)
	g.wantBatch(1)
	for range 5 {
		g.write(0)
	}
	g.awaitWriters(5)
	g.log.release <- struct{}{}
	g.wantBatch(5)
	g.log.release <- struct{}{}
}

// TestLargeBatchesDoNotWait checks that a large batch does not wait for the one in flight.
func TestLargeBatchesDoNotWait(t *testing.T) {
	t.Parallel()
	g := newLingerTest(t)
	g.write(0)
	g.wantBatch(1)
	g.write(largeBatchBytes)
	g.wantBatch(1)
	g.log.release <- struct{}{}
	g.log.release <- struct{}{}
}

// TestCrowdedLogGetsOneBatchAtATime checks that a large batch waits for the one in flight while the logs are
// crowded, and that the first batch does not wait.
func TestCrowdedLogGetsOneBatchAtATime(t *testing.T) {
	t.Parallel()
	g := newLingerTest(t)
	g.setLinger(0)
	g.log.crowded.Store(true)
	g.write(largeBatchBytes)
	g.wantBatch(1)
	g.write(largeBatchBytes)
	g.awaitWriters(1)
	g.write(0)
	g.awaitWriters(2) // both are in the batch that waits
	g.log.release <- struct{}{}
	g.wantBatch(2)
	g.log.release <- struct{}{}
}

// TestBatchesWaitForWriters checks that a batch waits for as many writers as the last one had,
// up to a limit, and that a single writer never waits.
func TestBatchesWaitForWriters(t *testing.T) {
	t.Parallel()
	g := newLingerTest(t)
	g.setLinger(0)
	g.write(0)
	g.wantBatch(1)
	for range 4 {
		g.write(0)
	}
	g.awaitWriters(4)
	g.log.release <- struct{}{}
	g.wantBatch(4)
	g.log.release <- struct{}{}
	g.writing.Wait()

	g.setLinger(24 * time.Hour) // so that only the fourth writer can end the wait
	for range 4 {
		g.write(0)
	}
	g.wantBatch(4)
	g.log.release <- struct{}{}
	g.writing.Wait()

	g.setLinger(time.Microsecond) // no other writer arrives
	g.write(0)
	g.wantBatch(1)
	g.log.release <- struct{}{}
	g.writing.Wait()

	g.setLinger(24 * time.Hour) // the last batch had one writer
	g.write(0)
	g.wantBatch(1)
	g.log.release <- struct{}{}
}
