package pebble

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"freshet/internal/storage/engine"
)

var errDisk = errors.New("disk is broken")

// TestFailedWriteIsFinal breaks the disk in several ways under load. Afterwards the engine
// acknowledges no write, Health reports the failure, and the process continues to run.
func TestFailedWriteIsFinal(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(op errorfs.Op) bool{
		"sync of the log": func(op errorfs.Op) bool {
			return isSync(op.Kind) && strings.HasSuffix(op.Path, ".log")
		},
		"write to the log": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log")
		},
		"new log": func(op errorfs.Op) bool {
			return (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) &&
				strings.HasSuffix(op.Path, ".log")
		},
		"manifest": func(op errorfs.Op) bool {
			return (op.Kind == errorfs.OpFileWrite || isSync(op.Kind)) &&
				strings.HasPrefix(filepath.Base(op.Path), "MANIFEST")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failUnderLoad(t, breaks)
		})
	}
}

func failUnderLoad(t *testing.T, breaks func(op errorfs.Op) bool) {
	t.Helper()
	ctx := context.Background()
	var broken atomic.Bool
	mem := vfs.NewCrashableMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && breaks(op) {
			return errDisk
		}
		return nil
	}))
	e, err := Open("store", Options{FS: fs, MemTableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		e.CreateTopic(ctx, 1, keepAll),
		e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}),
	); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := e.Read(ctx, 1, engine.ReadRequest{From: 1 << 40, Max: 1, Wait: time.Hour})
		waiting <- err
	}()
	var mu sync.Mutex
	var answered []engine.MessageID
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				out, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: make([]byte, 500)}})
				if err != nil {
					if !errors.Is(err, engine.ErrFailed) {
						t.Errorf("append: got error %v, want %v", err, engine.ErrFailed)
					}
					return
				}
				mu.Lock()
				answered = append(answered, out[0].ID)
				if len(answered) == 50 {
					broken.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := <-waiting; !errors.Is(err, engine.ErrFailed) {
		t.Errorf("waiting read: got error %v, want %v", err, engine.ErrFailed)
	}
	if err := e.Health(); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("health: got error %v, want %v", err, engine.ErrFailed)
	}
	for what, err := range map[string]error{
		"ack":          e.Settle(ctx, 1, "s", []engine.Settlement{{ID: engine.MessageID{Topic: 1}}}),
		"create topic": e.CreateTopic(ctx, 2, keepAll),
	} {
		if !errors.Is(err, engine.ErrFailed) {
			t.Errorf("%s after the failure: got error %v, want %v", what, err, engine.ErrFailed)
		}
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := e.Close(); !errors.Is(err, engine.ErrFailed) {
		t.Errorf("close: got error %v, want %v", err, engine.ErrFailed)
	}

	// Every acknowledged message exists when the disk works again.
	e, err = Open("store", Options{FS: left})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	stats, err := e.DescribeTopic(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range answered {
		if id.Entry >= stats.Partitions[0].Next {
			t.Fatalf("end of the partition: got %d, want it after %v, which was acknowledged",
				stats.Partitions[0].Next, id)
		}
	}
}

// TestFailedFlushIsNotFinal makes creating tables fail: Pebble retries, and nothing is lost.
func TestFailedFlushIsNotFinal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var failures atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") && failures.Add(1) <= 3 {
			return errDisk
		}
		return nil
	}))
	e, err := Open("store", Options{FS: fs, MemTableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: make([]byte, 1000)}}); err != nil {
			t.Fatal(err)
		}
	}
	if failures.Load() <= 3 {
		t.Fatalf("failed flushes: got %d, want more than 3", failures.Load())
	}
	if err := errors.Join(e.Health(), e.Close()); err != nil {
		t.Fatal(err)
	}
}
