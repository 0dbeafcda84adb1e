package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"freshet/internal/storage/engine"
)

// work distributes b.N calls of f over a number of goroutines and reports their latencies.
func work(b *testing.B, writers int, f func(worker, n int)) {
	b.Helper()
	took := make([][]time.Duration, writers)
	b.ResetTimer()
	spread(writers, b.N, func(w, n int) {
		start := time.Now()
		f(w, n)
		took[w] = append(took[w], time.Since(start))
	})
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

// spread distributes n calls of f over a number of goroutines.
func spread(writers, n int, f func(worker, n int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(w, int(i))
			}
		})
	}
	wg.Wait()
}

// payload returns incompressible bytes.
func payload(size int) []byte {
	p := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(p)
	return p
}

func openBench(b *testing.B) *Engine {
	b.Helper()
	e, err := Open(b.TempDir(), Options{FS: benchFS()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e
}

// benchFS returns nil for the disk or, when FRESHET_BENCH_SYNC (a duration) is set, a file
// system in memory whose log takes that long for each sync: a disk without other load.
func benchFS() vfs.FS {
	delay, err := time.ParseDuration(os.Getenv("FRESHET_BENCH_SYNC"))
	if err != nil {
		return nil
	}
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isSync(op.Kind) && strings.HasSuffix(op.Path, ".log") {
			time.Sleep(delay)
		}
		return nil
	}))
}

var keepAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

// BenchmarkSync measures how long the disk takes to make a kilobyte durable.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	value := payload(1024)
	work(b, 1, func(_, _ int) {
		_, err := f.Write(value)
		if err := errors.Join(err, f.Sync()); err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkBareSet measures the upper limit: Pebble itself, one synced Set per message.
func BenchmarkBareSet(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 512} {
		for _, size := range []int{100, 1024, 64 << 10} {
			b.Run(fmt.Sprintf("writers=%d/size=%d", writers, size), func(b *testing.B) {
				db := openBare(b)
				value := payload(size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				work(b, writers, func(_, n int) {
					var key [messageKeyLen]byte
					binary.BigEndian.PutUint64(key[8:], uint64(n))
					if err := db.Set(key[:], value, cdb.Sync); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}

// openBare opens Pebble as the engine does, without the engine.
func openBare(b *testing.B) *cdb.DB {
	b.Helper()
	e := &store{dir: b.TempDir(), opts: Options{FS: benchFS()}.withDefaults()}
	e.fs, e.log = e.opts.FS, e.opts.Logger
	db, err := e.open()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// BenchmarkAppend appends one message per call, to each topic in turn.
func BenchmarkAppend(b *testing.B) {
	for _, topics := range []int{1, 1000, 100_000} {
		var e *Engine
		for _, writers := range []int{1, 16, 64, 512} {
			for _, size := range []int{100, 1024, 64 << 10} {
				if topics > 1 && size != 1024 && writers != 64 {
					continue
				}
				b.Run(fmt.Sprintf("writers=%d/size=%d/topics=%d", writers, size, topics), func(sub *testing.B) {
					owner := sub
					if topics > 1 {
						owner = b // creating them takes long, so all benchmarks share one store
					}
					if topics == 1 || e == nil {
						e = openBench(owner)
						makeTopics(sub, e, 1, topics, false)
					}
					benchAppend(sub, e, writers, size, topics)
				})
			}
		}
	}
}

func benchAppend(b *testing.B, e *Engine, writers, size, topics int) {
	ctx := context.Background()
	value := payload(size)
	var next atomic.Uint64
	b.SetBytes(int64(size))
	b.ReportAllocs()
	work(b, writers, func(_, _ int) {
		id := engine.TopicID(next.Add(1)%uint64(topics) + 1)
		if _, err := e.Append(ctx, id, 0, []engine.Message{{Payload: value}}); err != nil {
			b.Error(err)
		}
	})
}

// makeTopics creates n topics with ids starting at from, with a subscription each if
// subscribe is true.
func makeTopics(b testing.TB, e *Engine, from, n int, subscribe bool) {
	b.Helper()
	ctx := context.Background()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, 512) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				id := engine.TopicID(from + i)
				err := e.CreateTopic(ctx, id, keepAll)
				if err == nil && subscribe {
					err = e.CreateSubscription(ctx, id, "s", engine.SubscriptionConfig{},
						engine.Position{Kind: engine.Earliest})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// fill appends messages in large batches.
func fill(b testing.TB, e *Engine, topic engine.TopicID, n, size int) {
	b.Helper()
	ctx := context.Background()
	value := payload(size)
	for n > 0 {
		msgs := make([]engine.Message, min(n, 1000))
		for i := range msgs {
			msgs[i].Payload = value
		}
		if _, err := e.Append(ctx, topic, 0, msgs); err != nil {
			b.Fatal(err)
		}
		n -= len(msgs)
	}
}

// BenchmarkReceiveAck receives one message and acknowledges it durably.
func BenchmarkReceiveAck(b *testing.B) {
	ctx := context.Background()
	for _, consumers := range []int{1, 16, 64, 512} {
		b.Run(fmt.Sprintf("consumers=%d/size=1024", consumers), func(b *testing.B) {
			e := openBench(b)
			makeTopics(b, e, 1, 1, true)
			fill(b, e, 1, b.N, 1024)
			b.SetBytes(1024)
			b.ReportAllocs()
			work(b, consumers, func(_, _ int) {
				if err := receiveAck(ctx, e); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkPipeline runs as many producers as waiting consumers: one operation appends,
// receives and acknowledges a message.
func BenchmarkPipeline(b *testing.B) {
	ctx := context.Background()
	for _, pairs := range []int{1, 64} {
		b.Run(fmt.Sprintf("pairs=%d/size=1024", pairs), func(b *testing.B) {
			e := openBench(b)
			makeTopics(b, e, 1, 1, true)
			value := payload(1024)
			b.SetBytes(1024)
			var wg sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			for range pairs {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						got, err := e.Receive(ctx, 1, "s",
							engine.ReceiveRequest{Max: 1, Wait: time.Minute, Partition: engine.AllPartitions})
						if err != nil || len(got) != 1 {
							b.Errorf("receive: got %d messages, %v; want 1", len(got), err)
							return
						}
						if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID}}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			work(b, pairs, func(_, _ int) {
				if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: value}}); err != nil {
					b.Error(err)
				}
			})
			wg.Wait()
		})
	}
}

// BenchmarkJournalAppend gives each writer a journal of its own.
func BenchmarkJournalAppend(b *testing.B) {
	ctx := context.Background()
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d/size=1024", writers), func(b *testing.B) {
			e := openBench(b)
			record := payload(1024)
			journals, last := make([]engine.Journal, writers), make([]uint64, writers)
			for w := range journals {
				var err error
				if journals[w], err = e.Journal(ctx, fmt.Sprint(w)); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(1024)
			work(b, writers, func(w, _ int) {
				var err error
				if last[w], err = journals[w].Append(ctx, last[w], record); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
