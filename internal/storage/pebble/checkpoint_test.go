package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// TestCheckpointUnderLoad copies the store while it is written to and opens every copy. The
// copy has every message that was acknowledged to its producer before, and delivers no
// message that a consumer acknowledged before.
func TestCheckpointUnderLoad(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	slow := &slowLog{FS: vfs.Default}
	e, err := Open(filepath.Join(dir, "store"), Options{FS: slow})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := errors.Join(
		e.CreateTopic(ctx, 1, keepAll),
		e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}),
	); err != nil {
		t.Fatal(err)
	}
	var appended, acked atomic.Int64 // entries below these are durable
	slow.written.Store(&appended)
	payload := bytes.Repeat([]byte("x"), 9000)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				out, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: payload}})
				if err != nil {
					t.Errorf("append: got error %v, want none", err)
					return
				}
				raise(&appended, int64(out[0].ID.Entry)+1)
			}
		})
	}
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1})
			if err != nil || len(got) == 0 {
				continue
			}
			if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID, Action: engine.Ack}}); err != nil {
				t.Errorf("acknowledge: got error %v, want none", err)
				return
			}
			raise(&acked, int64(got[0].ID.Entry)+1)
		}
	})
	for n := range 5 {
		wantMessages, wantAcked := appended.Load(), acked.Load()
		at := filepath.Join(dir, fmt.Sprint("copy-", n))
		if err := e.Checkpoint(ctx, at); err != nil {
			t.Fatal(err)
		}
		checkCopy(t, at, uint64(wantMessages), uint64(wantAcked))
	}
	close(stop)
	load.Wait()
	if appended.Load() == 0 || acked.Load() == 0 {
		t.Errorf("got %d messages and %d acknowledgements, want some of each", appended.Load(), acked.Load())
	}
}

// slowLog slows reads of the log down, so that the store writes to the log meanwhile.
type slowLog struct {
	vfs.FS
	written atomic.Pointer[atomic.Int64]
}

func (s *slowLog) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.Open(name, opts...)
	if written := s.written.Load(); err == nil && written != nil && strings.HasSuffix(name, ".log") {
		return &slowFile{f, written}, nil
	}
	return f, err
}

type slowFile struct {
	vfs.File
	written *atomic.Int64
}

// Read reads, and then waits until more than a block was written or a timeout expires.
func (f *slowFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if n > 0 {
		const messages, timeout = 12, 5 * time.Millisecond
		deadline, poll := time.After(timeout), time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for target := f.written.Load() + messages; f.written.Load() < target; {
			select {
			case <-poll.C:
			case <-deadline:
				return n, err
			}
		}
	}
	return n, err
}

// raise sets a number to value if that is larger.
func raise(to *atomic.Int64, value int64) {
	for {
		old := to.Load()
		if old >= value || to.CompareAndSwap(old, value) {
			return
		}
	}
}

func checkCopy(t *testing.T, dir string, messages, acked uint64) {
	t.Helper()
	ctx := context.Background()
	e, err := Open(dir, Options{})
	if err != nil {
		t.Fatalf("open %s: got error %v, want none", filepath.Base(dir), err)
	}
	defer e.Close()
	stats, err := e.DescribeTopic(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if next := stats.Partitions[0].Next; next < messages {
		t.Errorf("copy: got %d entries, want at least %d", next, messages)
	}
	if messages <= acked {
		return
	}
	got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1})
	if err != nil || len(got) != 1 || got[0].ID.Entry < acked {
		t.Errorf("receive: got %v, %v; want the first message that was not acknowledged, entry %d or later", got, err,
			acked)
	}
}

// TestCheckpointThatFails breaks the disk for the copy only: the store continues to work.
func TestCheckpointThatFails(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(op errorfs.Op) bool{
		"manifest":  func(op errorfs.Op) bool { return strings.HasPrefix(filepath.Base(op.Path), "MANIFEST") },
		"log":       func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") },
		"directory": func(op errorfs.Op) bool { return isSync(op.Kind) && filepath.Base(op.Path) == "copy" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if strings.HasPrefix(op.Path, "copy") && (op.Kind == errorfs.OpFileWrite || isSync(op.Kind)) &&
					breaks(op) {
					return errDisk
				}
				return nil
			}))
			e, err := Open("store", Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
				t.Fatal(err)
			}
			copied := make(chan error, 1)
			go func() { copied <- e.Checkpoint(ctx, "copy") }()
			select {
			case err := <-copied:
				if err == nil {
					t.Error("checkpoint on a broken disk: got no error, want one")
				}
			case <-e.failed:
				t.Fatalf("store after a failed checkpoint: got failure %v, want none", e.fault())
			}
			if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("after")}}); err != nil {
				t.Errorf("append after a failed checkpoint: got error %v, want none", err)
			}
			if err := errors.Join(e.Health(), e.Close()); err != nil {
				t.Errorf("health and close after a failed checkpoint: got error %v, want none", err)
			}
		})
	}
}
