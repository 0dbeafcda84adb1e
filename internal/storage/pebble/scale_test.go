package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// The benchmarks below build large stores. FRESHET_BENCH_SCALE scales them in percent of the
// sizes in docs/performance.md.
func scaled(n int) int {
	if s := os.Getenv("FRESHET_BENCH_SCALE"); s != "" {
		if percent, err := strconv.Atoi(s); err == nil {
			return max(1, n*percent/100)
		}
	}
	return n
}

func heapBytes() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// openLean opens a store with small caches and buffers of Pebble, which are on the heap when
// the program is built without cgo, so that most of the heap belongs to the engine.
func openLean(b *testing.B) *Engine {
	b.Helper()
	cache := &Cache{blocks: cdb.NewCache(1 << 20), tables: cdb.NewFileCache(1, 100)}
	e, err := Open(b.TempDir(),
		Options{Cache: cache, MemTableBytes: 256 << 10, MaxLoaded: 1 << 30, IdleAfter: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
		cache.Close()
	})
	return e
}

// BenchmarkOpen opens a cleanly closed store and reads a message; heap-MB is the heap that the
// store uses then.
func BenchmarkOpen(b *testing.B) {
	ctx := context.Background()
	b.Run(fmt.Sprintf("topics=%d", scaled(1_000_000)), func(b *testing.B) {
		benchOpen(b, func(e *Engine) {
			makeTopics(b, e, 1, scaled(1_000_000), false)
			fill(b, e, 1, 1, 1024)
		})
	})
	b.Run(fmt.Sprintf("messages=%d", scaled(10_000_000)), func(b *testing.B) {
		benchOpen(b, func(e *Engine) {
			makeTopics(b, e, 1, 100, true)
			var wg sync.WaitGroup
			for id := range 100 {
				wg.Go(func() { fill(b, e, engine.TopicID(id+1), scaled(10_000_000)/100, 100) })
			}
			wg.Wait()
			_, err := e.ListTopics(ctx, 0, 1)
			if err != nil {
				b.Error(err)
			}
		})
	})
}

func benchOpen(b *testing.B, build func(*Engine)) {
	ctx := context.Background()
	dir := b.TempDir()
	e, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	build(e)
	settle(b, e)
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	syscall.Sync() // so that pending writes of the setup are not measured
	var grown float64
	for b.Loop() {
		b.StopTimer()
		before := heapBytes()
		b.StartTimer()
		e, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if records, err := e.Read(ctx, 1, engine.ReadRequest{Max: 1}); err != nil || len(records) != 1 {
			b.Fatalf("read: got %d messages, %v; want 1", len(records), err)
		}
		b.StopTimer()
		grown = max(grown, heapBytes()-before)
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(grown/1e6, "heap-MB")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/open")
}

// BenchmarkRecover opens a store after a crash, which replays the part of the log that is not
// in tables yet.
func BenchmarkRecover(b *testing.B) {
	ctx := context.Background()
	b.Run(fmt.Sprintf("messages=%d/size=1024", scaled(60_000)), func(b *testing.B) {
		e := openBench(b)
		makeTopics(b, e, 1, 1, true)
		fill(b, e, 1, scaled(60_000), 1024)
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			dir := filepath.Join(b.TempDir(), "crashed")
			if err := e.db.Checkpoint(dir, cdb.WithFlushedWAL()); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			crashed, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			stats, err := crashed.DescribeTopic(ctx, 1)
			if err != nil || stats.Partitions[0].Next != uint64(scaled(60_000)) {
				b.Fatalf("describe: got %+v, %v; want all messages", stats, err)
			}
			b.StopTimer()
			if err := errors.Join(crashed.Close(), os.RemoveAll(dir)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/open")
	})
}

// BenchmarkMemory reports the heap usage of topics and subscriptions: loaded, in use (with one
// message appended and leased), and idle again.
func BenchmarkMemory(b *testing.B) {
	n := scaled(50_000)
	for b.Loop() {
		e := openLean(b)
		empty := heapBytes()
		last := empty
		per := func(name string, f func()) {
			b.Helper()
			f()
			now := heapBytes()
			b.ReportMetric((now-last)/float64(n), name)
			last = now
		}
		per("B/topic", func() { makeTopics(b, e, 1, n, false) })
		per("B/topic-written", func() {
			each(b, n, func(ctx context.Context, id engine.TopicID) error {
				_, err := e.Append(ctx, id, 0, []engine.Message{{Payload: []byte("x")}})
				return err
			})
		})
		per("B/subscription", func() { subscribeAll(b, e, n, "s") })
		per("B/subscription-leasing", func() {
			each(b, n, func(ctx context.Context, id engine.TopicID) error {
				_, err := e.Receive(ctx, id, "s", engine.ReceiveRequest{Max: 1, Lease: time.Hour, Partition: 0})
				return err
			})
		})
		each(b, n, func(ctx context.Context, id engine.TopicID) error {
			return e.Settle(ctx, id, "s", []engine.Settlement{{ID: engine.MessageID{Topic: id}}})
		})
		last = empty
		per("B/idle-topic", func() { e.topics.evict(); e.topics.evict() })
		if loaded := e.topics.loaded(); loaded != 0 {
			b.Errorf("loaded topics: got %d, want none", loaded)
		}
	}
}

// BenchmarkLeases reports the heap usage of a leased message.
func BenchmarkLeases(b *testing.B) {
	n := scaled(100_000)
	for b.Loop() {
		e := openLean(b)
		makeTopics(b, e, 1, 1, true)
		fill(b, e, 1, n, 10)
		before := heapBytes()
		for left := n; left > 0; left -= 1000 {
			if _, err := e.Receive(context.Background(), 1, "s",
				engine.ReceiveRequest{Max: 1000, Lease: time.Hour, Partition: 0}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((heapBytes()-before)/float64(n), "B/lease")
	}
}

// each calls f concurrently for the topics 1 to n.
func each(b *testing.B, n int, f func(context.Context, engine.TopicID) error) {
	b.Helper()
	spread(512, n, func(_, i int) {
		if err := f(context.Background(), engine.TopicID(i)); err != nil {
			b.Error(err)
		}
	})
}

func subscribeAll(b *testing.B, e *Engine, n int, name string) {
	b.Helper()
	each(b, n, func(ctx context.Context, id engine.TopicID) error {
		return e.CreateSubscription(ctx, id, name, engine.SubscriptionConfig{}, engine.Position{Kind: engine.Earliest})
	})
}

// BenchmarkWriteAmplification writes random messages of 1 KiB to 1,000 topics, waits for the
// compactions, and reports the bytes written to disk per byte of payload.
func BenchmarkWriteAmplification(b *testing.B) {
	ctx := context.Background()
	for b.Loop() {
		total := scaled(2 << 20) // messages of 1 KiB
		e := openBench(b)
		makeTopics(b, e, 1, 1000, true)
		start := time.Now()
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				noise := rand.NewChaCha8([32]byte{byte(w)})
				pick := rand.New(rand.NewPCG(uint64(w), 0))
				value := make([]byte, 1024)
				for range total / 64 {
					_, _ = noise.Read(value)
					id := engine.TopicID(pick.IntN(1000) + 1)
					if _, err := e.Append(ctx, id, 0, []engine.Message{{Payload: value}}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64(total)/time.Since(start).Seconds(), "op/s")
		settle(b, e)
		m := e.db.Metrics()
		var flushed, compacted uint64
		for i := range m.Levels {
			flushed += m.Levels[i].TableBytesFlushed
			compacted += m.Levels[i].TableBytesCompacted
		}
		stored := float64(total) * 1024
		b.ReportMetric(float64(m.WAL.BytesWritten)/stored, "amp-log")
		b.ReportMetric(float64(flushed)/stored, "amp-flush")
		b.ReportMetric(float64(compacted)/stored, "amp-compact")
		b.ReportMetric((float64(m.WAL.BytesWritten)+float64(flushed)+float64(compacted))/stored, "amp")
		b.ReportMetric(float64(m.DiskSpaceUsage())/stored, "space")
		if os.Getenv("FRESHET_BENCH_VERBOSE") != "" {
			b.Log("\n" + m.String())
		}
	}
}

// settle waits until all compactions have ended.
func settle(b *testing.B, e *Engine) {
	b.Helper()
	if err := e.db.Flush(); err != nil {
		b.Fatal(err)
	}
	for quiet := 0; quiet < 20; {
		if e.db.Metrics().Compact.NumInProgress == 0 {
			quiet++
		} else {
			quiet = 0
		}
		<-time.After(100 * time.Millisecond)
	}
}
