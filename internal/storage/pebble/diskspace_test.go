package pebble

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

func TestDiskFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		fs := vfs.NewMem()
		free := func(n uint64) {
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40, UsedBytes: 1<<40 - n})
			time.Sleep(2 * diskCheckInterval)
		}
		free(10 << 20)
		e, err := Open("store", Options{FS: fs, MinFreeBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		j, err := e.Journal(ctx, "j")
		if err != nil {
			t.Fatal(err)
		}
		put := func() error {
			_, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("x")}})
			return err
		}
		if err := errors.Join(
			e.CreateTopic(ctx, 1, keepAll),
			e.CreateTopic(ctx, 2, keepAll),
			e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}),
			put(),
		); err != nil {
			t.Fatal(err)
		}
		free(1<<20 - 1)
		if err := put(); !errors.Is(err, engine.ErrDiskFull) {
			t.Errorf("append on a full disk: got error %v, want %v", err, engine.ErrDiskFull)
		}
		if err := e.CreateTopic(ctx, 3, keepAll); !errors.Is(err, engine.ErrDiskFull) {
			t.Errorf("create topic on a full disk: got error %v, want %v", err, engine.ErrDiskFull)
		}
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		if err != nil || len(got) != 1 {
			t.Fatalf("receive on a full disk: got %d messages, %v; want 1", len(got), err)
		}
		if err := errors.Join(
			e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID}}),
			e.DeleteTopic(ctx, 2),
			e.Health(),
		); err != nil {
			t.Errorf("acknowledge and delete on a full disk: got error %v, want none", err)
		}
		if _, err := j.Append(ctx, 0, []byte("r")); err != nil {
			t.Errorf("journal append on a full disk: got error %v, want none", err)
		}
		free(1 << 18 >> 1)
		if _, err := j.Append(ctx, 1, []byte("r")); !errors.Is(err, engine.ErrDiskFull) {
			t.Errorf("journal append below a quarter of the reserve: got error %v, want %v", err, engine.ErrDiskFull)
		}
		if _, err := j.Append(engine.AllowWhenDiskFull(ctx), 1, []byte("r")); err != nil {
			t.Errorf("journal append that frees space: got error %v, want none", err)
		}
		free(1<<20 + 1)
		if err := put(); !errors.Is(err, engine.ErrDiskFull) {
			t.Errorf("append slightly above the reserve: got error %v, want %v", err, engine.ErrDiskFull)
		}
		free(2 << 20)
		if err := put(); err != nil {
			t.Errorf("append with enough space again: got error %v, want none", err)
		}
	})
}

// TestFastProducersKeepTheReserve fills the disk between two checks of its free space.
func TestFastProducersKeepTheReserve(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	ctx := context.Background()
	for name, put := range map[string]func(*Engine) error{
		"messages": func(e *Engine) error {
			_, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: make([]byte, size)}})
			return err
		},
		"batches": func(e *Engine) error {
			pending, err := e.AppendBatch(ctx, 1, 0, engine.MessageBatch{
				Format: engine.KafkaRecordBatch, Count: 1, Body: make([]byte, size),
			}, nil)
			if err != nil {
				return err
			}
			return pending.Wait(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewMem()
				free := func(n uint64) {
					fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40, UsedBytes: 1<<40 - n})
				}
				free(2 << 20)
				e, err := Open("store", Options{FS: fs, MinFreeBytes: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
					t.Fatal(err)
				}
				free(1<<20 - 1) // what the appends below use; the next check is a second away
				accepted := 0
				for err = put(e); err == nil && accepted < 100; err = put(e) {
					accepted++
				}
				// Half of the free mebibyte, because a message is written to the log and to a table.
				if most := (1 << 20) / 2 / size; !errors.Is(err, engine.ErrDiskFull) || accepted > most {
					t.Errorf("got %d accepted appends and error %v, want at most %d and %v", accepted, err, most,
						engine.ErrDiskFull)
				}
			})
		})
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		set  int64
		disk uint64
		want uint64
	}{
		"a tiny disk":      {0, 40 << 20, 10 << 20},
		"a small disk":     {0, 300 << 20, 64 << 20},
		"a middling disk":  {0, 10 << 30, 512 << 20},
		"a large disk":     {0, 1 << 40, 1 << 30},
		"configured value": {7 << 20, 1 << 40, 7 << 20},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := diskSpace{s: &store{opts: Options{MinFreeBytes: tc.set}}}
			if got := d.reserve(tc.disk); got != tc.want {
				t.Errorf("reserve: got %d bytes, want %d", got, tc.want)
			}
		})
	}
}
