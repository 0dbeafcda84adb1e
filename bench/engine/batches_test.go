// Package engine measures the store of large batches in this process, without a protocol: the CPU
// time and the bytes on the disk for each KiB that is written and read. The figures of two builds can be
// compared on a busy machine.
package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/bench/payload"
	"freshet/bench/process"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

const (
	batchRecords = 250
	batchCount   = 1024 // 256 MB
	batchPool    = 256  // different batches
	writers      = 16
	topics       = 4
)

// BenchmarkLargeBatches appends batches of 250 KiB with 16 writers, waits until the store has no work left, opens it
// again and reads all batches twice: first from the disk (or the page cache of the system), then again.
func BenchmarkLargeBatches(b *testing.B) {
	for name, generate := range map[string]func(*rand.Rand) string{"events": payload.Event, "random": payload.Random} {
		b.Run(name, func(b *testing.B) {
			bodies := batches(generate)
			for b.Loop() {
				measureBatches(b, bodies)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func batches(generate func(*rand.Rand) string) (bodies [][]byte) {
	values := payload.Pool(batchPool*batchRecords, generate)
	for at := 0; at < len(values); at += batchRecords {
		bodies = append(bodies, bytes.Join(values[at:at+batchRecords], nil))
	}
	return bodies
}

func measureBatches(b *testing.B, bodies [][]byte) {
	b.Helper()
	ctx, dir := context.Background(), b.TempDir()
	e := open(b, dir)
	for id := engine.TopicID(1); id <= topics; id++ {
		check(b, e.CreateTopic(ctx, id, engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}))
	}
	m := begin(b)
	var next, written atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := next.Add(1); n <= batchCount; n = next.Add(1) {
				body := bodies[n%batchPool]
				pending, err := e.AppendBatch(ctx, engine.TopicID(n%topics+1), 0,
					engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: batchRecords, Body: body}, nil)
				if err == nil {
					err = pending.Wait(ctx)
				}
				if err != nil {
					b.Error(err)
					return
				}
				written.Add(int64(len(body)))
			}
		})
	}
	wg.Wait()
	m.settle(b)
	check(b, e.Close())
	m.report(b, "write", written.Load())
	e = open(b, dir)
	defer func() { check(b, e.Close()) }()
	for _, name := range []string{"read", "read-again"} {
		m, read := begin(b), int64(0)
		for id := engine.TopicID(1); id <= topics; id++ {
			_, err := e.ReadBatches(ctx, id, 0, 0, func(s *engine.StoredValue) (bool, error) {
				read += int64(len(s.Run.Body))
				return true, nil
			})
			check(b, err)
		}
		if read != written.Load() {
			b.Errorf("%s: got %d bytes, want %d", name, read, written.Load())
		}
		m.report(b, name, read)
	}
}

func open(b *testing.B, dir string) *pebble.Engine {
	b.Helper()
	e, err := pebble.Open(dir, pebble.Options{})
	check(b, err)
	return e
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// measurement is the CPU time that the process has used and the bytes that it has written.
type measurement struct {
	cpu     time.Duration
	written int64
}

func begin(b *testing.B) (m measurement) {
	b.Helper()
	var err error
	if m.cpu, err = process.CPU(os.Getpid()); err == nil {
		m.written, err = process.Written(os.Getpid())
	}
	check(b, err)
	return m
}

// settle waits until flushes and compactions have ended: the process is idle for a second.
func (m *measurement) settle(b *testing.B) {
	b.Helper()
	for last, quiet := begin(b), 0; quiet < 4; {
		<-time.After(250 * time.Millisecond)
		now := begin(b)
		if quiet++; now.cpu-last.cpu > 10*time.Millisecond {
			quiet = 0
		}
		last = now
	}
}

// report reports what was used since the beginning.
func (m *measurement) report(b *testing.B, name string, size int64) {
	b.Helper()
	now := begin(b)
	b.ReportMetric(float64((now.cpu-m.cpu).Nanoseconds())/1000/float64(size>>10), name+"-cpu-µs/KiB")
	if name == "write" {
		b.ReportMetric(float64(now.written-m.written)/float64(size), "written-B/B")
	}
}
