package pebble

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"freshet/internal/storage/engine"
)

// heldDisk is a file system that can block syncs of the write-ahead log.
type heldDisk struct {
	vfs.FS
	hold chan chan struct{} // contains the channel that syncs wait for
}

func newHeldDisk() *heldDisk {
	d := &heldDisk{hold: make(chan chan struct{}, 1)}
	open := make(chan struct{})
	close(open)
	d.hold <- open
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isSync(op.Kind) && strings.HasSuffix(op.Path, ".log") {
			gate := <-d.hold
			d.hold <- gate
			<-gate
		}
		return nil
	}))
	return d
}

// block blocks syncs until the returned function is called.
func (d *heldDisk) block() (release func()) {
	<-d.hold
	gate := make(chan struct{})
	d.hold <- gate
	return func() { close(gate) }
}

// TestNothingIsVisibleBeforeItIsDurable blocks the sync and checks that no call returns, and that
// nothing is visible, before the sync.
func TestNothingIsVisibleBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		disk := newHeldDisk()
		e, err := Open("store", Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		must(t, e.CreateTopic(ctx, 1, keepAll))
		once := keepAll
		once.Deduplicate = true
		must(t, e.CreateTopic(ctx, 3, once))
		must(t, e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}))
		j, err := e.Journal(ctx, "j")
		must(t, err)
		_, err = e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("old")}})
		must(t, err)

		release := disk.block()
		answered := make(chan string, 10)
		call := func(name string, f func() error) {
			go func() {
				if err := f(); err != nil {
					t.Errorf("%s: got error %v, want none", name, err)
				}
				answered <- name
			}()
		}
		call("append", func() error {
			_, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("new")}})
			return err
		})
		call("create topic", func() error { return e.CreateTopic(ctx, 2, keepAll) })
		call("subscribe", func() error {
			return e.CreateSubscription(ctx, 1, "t", engine.SubscriptionConfig{}, engine.Position{})
		})
		call("ack", func() error {
			return e.Settle(ctx, 1, "s", []engine.Settlement{{ID: engine.MessageID{Topic: 1}}})
		})
		call("journal", func() error { _, err := j.Append(ctx, 0, []byte("r")); return err })
		call("conflict", func() error { _, err := j.Append(ctx, 5); _ = err; return nil })
		sendOnce := func() error {
			_, err := e.Append(ctx, 3, 0, []engine.Message{{Dedup: engine.DedupKey{Producer: "p"}}})
			return err
		}
		call("send once", sendOnce)
		synctest.Wait()
		call("send again", sendOnce)
		call("lose", func() error {
			if _, err := j.Append(ctx, 0, []byte("too late")); !errors.Is(err, engine.ErrConflict) {
				return fmt.Errorf("got error %w, want %w", err, engine.ErrConflict)
			}
			return nil
		})
		call("ack again", func() error {
			return e.Settle(ctx, 1, "s", []engine.Settlement{{ID: engine.MessageID{Topic: 1}}})
		})
		synctest.Wait()
		if name := <-answered; name != "conflict" || len(answered) != 0 {
			t.Errorf("calls that returned before the sync: got %s and %d more, want only conflict", name, len(answered))
		}

		records, err := e.Read(ctx, 1, engine.ReadRequest{Max: 10})
		must(t, err)
		if len(records) != 1 || string(records[0].Payload) != "old" {
			t.Errorf("read before the sync: got %d messages, want the old one", len(records))
		}
		ids, err := e.ListTopics(ctx, 0, 10)
		must(t, err)
		if len(ids) != 2 {
			t.Errorf("list before the sync: got topics %v, want 2", ids)
		}
		if last, err := j.Last(ctx); err != nil || last != 0 {
			t.Errorf("end of the journal before the sync: got %d, %v; want 0", last, err)
		}
		if _, err := j.Replay(ctx, 0,
			func(uint64, []byte) error { t.Error("replay before the sync: got a record, want none"); return nil },
		); err != nil {
			t.Error(err)
		}
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 10, Partition: engine.AllPartitions})
		must(t, err)
		if len(got) != 0 {
			t.Errorf("receive before the sync: got %v, want none", got)
		}

		release()
		for range 9 {
			<-answered
		}
		stats, err := e.DescribeTopic(ctx, 1)
		must(t, err)
		if stats.Partitions[0].Next != 2 || len(stats.Subscriptions) != 2 || stats.Subscriptions[0].Backlog != 1 {
			t.Errorf("describe: got %+v, want 2 messages and 2 subscriptions, the first with a backlog of 1", stats)
		}
	})
}
