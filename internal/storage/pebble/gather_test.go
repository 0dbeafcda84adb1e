package pebble

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// heldLog is a log that has a group when the test says so.
type heldLog struct {
	appended chan int      // messages of a group, when it arrives
	release  chan struct{} // each lets one group be in the log
	position uint64        // of the goroutine that waits
}

// heldMessage is in every message of these tests, and nowhere else.
var heldMessage = []byte("held message")

func (l *heldLog) Append(batch []byte) Place {
	l.appended <- bytes.Count(batch, heldMessage)
	return l
}

func (l *heldLog) Wait() ([]byte, error) {
	<-l.release
	l.position++
	return mark(int(l.position)), nil
}

func (*heldLog) Live() bool                     { return true }
func (*heldLog) Full() (messages, records bool) { return false, false }

// gathering is an engine on a heldLog with a topic.
type gathering struct {
	*testing.T
	e       *Engine
	log     *heldLog
	writing sync.WaitGroup
}

func newGathering(t *testing.T) *gathering {
	t.Helper()
	store, err := OpenStore("store", Options{FS: vfs.NewMem()})
	must(t, err)
	g := &gathering{T: t, log: &heldLog{appended: make(chan int), release: make(chan struct{})}}
	opened := make(chan struct{})
	go func() { // whatever opening and making a topic write
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

// write appends a message of a size.
func (g *gathering) write(size int) {
	g.writing.Go(func() {
		payload := append(bytes.Clone(heldMessage), make([]byte, size)...)
		if _, err := g.e.Append(context.WithoutCancel(g.Context()), 1, 0,
			[]engine.Message{{Payload: payload}}); err != nil {
			g.Errorf("append: got error %v, want none", err)
		}
	})
}

// await returns when a number of writers have joined the current group.
func (g *gathering) await(writers int) {
	for joined := false; !joined; runtime.Gosched() {
		g.e.commit.mu.Lock()
		joined = g.e.commit.cur.writers == writers
		g.e.commit.mu.Unlock()
	}
}

// patience sets how long a group waits for writers.
func (g *gathering) patience(d time.Duration) {
	g.e.commit.mu.Lock()
	defer g.e.commit.mu.Unlock()
	g.e.commit.most, g.e.commit.took = d, lingerPart*d
}

func (g *gathering) wantGroup(messages int) {
	g.Helper()
	if got := <-g.log.appended; got != messages {
		g.Errorf("got a group of %d messages, want %d", got, messages)
	}
}

// TestGroupsGather has writers come while a group is on its way to the log: they make
// one group, not one each.
func TestGroupsGather(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	g.patience(0)
	g.write(0)
	g.wantGroup(1)
	for range 5 {
		g.write(0)
	}
	g.await(5)
	g.log.release <- struct{}{}
	g.wantGroup(5)
	g.log.release <- struct{}{}
}

// TestLargeGroupsGo has a group that is large by itself not wait for the one before.
func TestLargeGroupsGo(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	g.write(0)
	g.wantGroup(1)
	g.write(largeGroup)
	g.wantGroup(1)
	g.log.release <- struct{}{}
	g.log.release <- struct{}{}
}

// TestGroupsWaitForWriters has a group wait for those who wrote in the last one, for a
// while, and not for others: a writer that is alone is never held up.
func TestGroupsWaitForWriters(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	g.patience(0)
	g.write(0)
	g.wantGroup(1)
	for range 4 {
		g.write(0)
	}
	g.await(4)
	g.log.release <- struct{}{}
	g.wantGroup(4)
	g.log.release <- struct{}{}
	g.writing.Wait()

	g.patience(24 * time.Hour) // so that only the fourth can end it
	for range 4 {
		g.write(0)
	}
	g.wantGroup(4)
	g.log.release <- struct{}{}
	g.writing.Wait()

	g.patience(time.Microsecond) // nobody else comes
	g.write(0)
	g.wantGroup(1)
	g.log.release <- struct{}{}
	g.writing.Wait()

	g.patience(24 * time.Hour) // the last one was alone
	g.write(0)
	g.wantGroup(1)
	g.log.release <- struct{}{}
}
