package replicated

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// onDisk replaces the small stores of tests with stores of the default size.
func onDisk(o *Options) {
	o.Store = pebble.Options{}
	o.Logger = nil
}

// BenchmarkAppend appends messages of 1 KiB durably: to an embedded engine, and to shards
// with one and three members. All members and servers run in this process, so the CPU time
// is that of the whole ensemble.
func BenchmarkAppend(b *testing.B) {
	b.Run("embedded", func(b *testing.B) {
		e, err := pebble.Open(b.TempDir(), pebble.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		benchAppends(b, e)
	})
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			g := newTestEnsemble(b, members)
			tm := g.team()
			var all []*member
			for i := range members {
				m := tm.start(b, fmt.Sprint("m", i), i, nil, onDisk)
				if i == 0 {
					m.awaitOwner(b)
				}
				all = append(all, m)
			}
			benchAppends(b, all[0].awaitOwner(b))
			end := all[0].Status().Applied
			for _, m := range all[1:] {
				m.awaitApplied(b, end)
			}
			for _, m := range all {
				m.stop(b)
			}
		})
	}
}

func benchAppends(b *testing.B, e engine.Engine) {
	ctx := context.Background()
	if err := e.CreateTopic(ctx, 1, retainAll); err != nil {
		b.Fatal(err)
	}
	payload := events(1024)
	for _, writers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			used := cpuTime()
			b.ResetTimer()
			for range writers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: payload}}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/msg")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// BenchmarkLogAlone appends to a log of three servers without a store, a standby or a
// request. It is the lower bound for the commit batches of BenchmarkAppend, by batch size
// and by the number of batches in flight.
func BenchmarkLogAlone(b *testing.B) {
	g := newTestEnsemble(b, 3)
	js, err := jetstream.New(g.nats.Connect(0), jetstream.WithPublishAsyncMaxPending(8))
	if err != nil {
		b.Fatal(err)
	}
	st := &stream{js: js, name: "S_bench_0", subject: "S.bench.0"}
	if _, err := st.createFrom(b.Context(), &Options{JetStream: js, Replicas: 3}, logID{}, 1); err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{1, 64, 512} {
		for _, ahead := range []int{1, 8} {
			b.Run(fmt.Sprintf("KiB=%d/ahead=%d", size, ahead), func(b *testing.B) {
				data := make([]byte, size<<10)
				pending := make(chan jetstream.PubAckFuture, ahead)
				await := func(f jetstream.PubAckFuture) {
					select {
					case <-f.Ok():
					case err := <-f.Err():
						b.Fatal(err)
					}
				}
				used := cpuTime()
				for b.Loop() {
					f, err := js.PublishAsync(st.subject, data)
					if err != nil {
						b.Fatal(err)
					}
					pending <- f
					if len(pending) == ahead {
						await(<-pending)
					}
				}
				for len(pending) > 0 {
					await(<-pending)
				}
				b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N*size), "cpu-µs/KiB")
			})
		}
	}
}

// BenchmarkEmptyMember starts an empty member: it fetches a checkpoint of the owner's store
// over HTTP, without the usual rate limit, and follows the log from there.
func BenchmarkEmptyMember(b *testing.B) {
	const batches, batch, size = 512, 16, 64 << 10 // 512 MiB
	tm := newTestEnsemble(b, 1, natstest.Unsafe).team()
	owner := tm.start(b, "a", 0, nil, onDisk, func(o *Options) { o.FlushInterval = time.Second })
	e := owner.awaitOwner(b)
	if err := e.CreateTopic(b.Context(), 1, retainAll); err != nil {
		b.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{}) // incompressible
	for range batches {
		messages := make([]engine.Message, batch)
		for i := range messages {
			messages[i].Payload = make([]byte, size)
			_, _ = random.Read(messages[i].Payload) // never fails
		}
		if _, err := e.Append(b.Context(), 1, 0, messages); err != nil {
			b.Fatal(err)
		}
	}
	end := owner.Status().Applied
	eventually(b, "the log purged", func() bool { return owner.first(b)+1 >= end })
	used, began := cpuTime(), time.Now()
	for i := range b.N {
		m := tm.start(b, fmt.Sprint("m", i), 0, nil, onDisk, owner.servesCheckpoints(b, http.DefaultTransport),
			func(o *Options) { o.FetchBytes = 1 << 40 })
		m.awaitApplied(b, end)
		m.stop(b)
	}
	gigabytes := float64(b.N) * batches * batch * size / (1 << 30)
	b.ReportMetric(time.Since(began).Seconds()/gigabytes, "s/GB")
	b.ReportMetric((cpuTime()-used).Seconds()/gigabytes, "cpu-s/GB")
	owner.stop(b)
}
