package schemas

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// fillJournal appends the records of n registrations of different schemas in
// different subjects.
func fillJournal(b *testing.B, j engine.Journal, n int) {
	b.Helper()
	last, err := j.Last(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < n; {
		var records [][]byte
		for ; i < n && len(records) < 1000; i++ {
			rec := &record{
				op: opRegister, at: time.Now().UnixMilli(), subject: fmt.Sprintf("team.orders.topic-%06d-value", i),
				version: 1, id: int32(i + 1), fresh: true, algorithm: canonAlgorithm, typ: Avro,
				text: benchText(i),
			}
			records = append(records, rec.encode())
		}
		if last, err = j.Append(b.Context(), last, records...); err != nil {
			b.Fatal(err)
		}
	}
}

// benchText returns an Avro schema of about 1 KiB.
func benchText(i int) string {
	fields := make([]string, 18)
	for f := range fields {
		fields[f] = fmt.Sprintf("a_field_name_%d_%d?", i, f)
	}
	return avroRecord(fmt.Sprintf("Record%d", i), fields...)
}

// BenchmarkOpen opens a registry with 100,000 subjects, from records and from a
// snapshot, and reports the memory that it uses.
func BenchmarkOpen(b *testing.B) {
	const n = 100_000
	e, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	j, err := e.Journal(b.Context(), "registry")
	if err != nil {
		b.Fatal(err)
	}
	fillJournal(b, j, n)
	open := func(b *testing.B) {
		for b.Loop() {
			before := heap()
			r, err := Open(context.Background(), j, Options{SnapshotBytes: -1})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if got := r.Counts().Subjects; got != n {
				b.Fatalf("subjects: got %d, want %d", got, n)
			}
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	b.Run("records", open)
	r, err := Open(b.Context(), j, Options{})
	if err != nil {
		b.Fatal(err)
	}
	started := time.Now()
	if err := j.SaveSnapshot(b.Context(), r.Position(), r.machine.View().Snapshot); err != nil {
		b.Fatal(err)
	}
	b.Logf("saved the snapshot in %s", time.Since(started))
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("snapshot", open)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRegister measures registrations without HTTP: parse, check and commit.
func BenchmarkRegister(b *testing.B) {
	for _, size := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("on %d", size), func(b *testing.B) {
			e, err := pebble.Open(b.TempDir(), pebble.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			j, err := e.Journal(b.Context(), "registry")
			if err != nil {
				b.Fatal(err)
			}
			fillJournal(b, j, size)
			r, err := Open(b.Context(), j, Options{SnapshotBytes: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			next := make(chan int)
			go func() {
				for i := size; ; i++ {
					select {
					case next <- i:
					case <-b.Context().Done():
						return
					}
				}
			}()
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := <-next
					if _, err := r.Register(b.Context(), fmt.Sprintf("new-%d", i),
						&Draft{Type: Avro, Text: benchText(i)}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
