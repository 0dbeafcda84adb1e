package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/engine"
)

// work runs b.N calls of f over a number of goroutines.
func work(b *testing.B, writers int, f func(worker, n int)) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				f(w, int(n))
			}
		}()
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
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
	e, err := Open(b.TempDir(), Options{})
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

var keepAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

// BenchmarkBareSet is the limit: Pebble itself, one synced Set per message.
func BenchmarkBareSet(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 512} {
		b.Run(fmt.Sprintf("writers=%d/size=1024", writers), func(b *testing.B) {
			e := &Engine{dir: b.TempDir(), opts: Options{}.withDefaults()}
			e.fs, e.log = e.opts.FS, e.opts.Logger
			db, err := e.openStore()
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			value := payload(1024)
			b.SetBytes(1024)
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

func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	for _, writers := range []int{1, 16, 64, 512} {
		for _, size := range []int{100, 1024, 64 << 10} {
			b.Run(fmt.Sprintf("writers=%d/size=%d", writers, size), func(b *testing.B) {
				e := openBench(b)
				if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
					b.Fatal(err)
				}
				value := payload(size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				work(b, writers, func(_, _ int) {
					if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: value}}); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}
