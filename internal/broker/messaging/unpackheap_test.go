package messaging_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/test/tally"
)

// gzipBatch returns a gzip-compressed batch of equal values.
func gzipBatch(count int, value []byte) []byte {
	b := records.NewBuilder(nil, 0)
	for i := range count {
		b.Add(&records.Record{Delta: int32(i), Time: 1_700_000_000_000, Value: value})
	}
	return compressBatch(b.Finish())
}

// compressBatch compresses the records of a batch with gzip.
func compressBatch(plain []byte) []byte {
	out := bytes.NewBuffer(bytes.Clone(plain[:records.BatchHeaderSize]))
	w := gzip.NewWriter(out)
	_, _ = w.Write(plain[records.BatchHeaderSize:])
	_ = w.Close()
	batch := out.Bytes()
	binary.BigEndian.PutUint16(batch[21:], uint16(records.Gzip))
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// bomb returns a batch of 64 KB whose records have 60 MiB.
func bomb() []byte { return gzipBatch(12, make([]byte, 5<<20)) }

// liveHeap returns the bytes of reachable objects.
func liveHeap() int64 {
	runtime.GC()
	return int64(heapObjects())
}

func heapObjects() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// appendBatch appends a batch as a Kafka producer does.
func (c *cluster) appendBatch(name names.Topic, batch []byte) error {
	c.t.Helper()
	kafka, err := c.Kafka.KafkaTopic(c.t.Context(), name)
	c.do(err)
	placed, err := kafka.Append(c.t.Context(), 0, batch, messaging.Sender{})
	if err != nil {
		return err
	}
	return placed.Wait(c.t.Context())
}

// TestAttackBatchesThatDecompressToMuch sends 1 MB in 16 compressed batches, each of which has 60 MiB
// of records, and reads one message of each as HTTP does. The decoded messages must not stay
// in memory. The test measures the heap, so it does not run in parallel.
func TestAttackBatchesThatDecompressToMuch(t *testing.T) {
	c := newCluster(t, messaging.Options{})
	const batches, limit = 16, 256 << 20
	name := c.create("t", 0)
	kafka, err := c.Kafka.KafkaTopic(t.Context(), name)
	c.do(err)
	ledger := int64(kafka.ID())
	batch := bomb()
	before := liveHeap()
	for range batches {
		c.do(c.appendBatch(name, bytes.Clone(batch)))
	}
	succeeded := 0
	for i := range batches {
		id := names.MessageID{Ledger: ledger, Entry: int64(12 * i), Partition: -1}
		got, err := c.Consumer.Message(t.Context(), name, id)
		if err != nil || len(got.Payload) != 5<<20 {
			t.Fatalf("batch %d: got %d bytes, %v, want 5 MiB", i, len(got.Payload), err)
		}
	}
	if used := liveHeap() - before; used > limit {
		succeeded++
		t.Errorf("live heap: got %d MiB after %d batches, want at most %d", used>>20, batches, limit>>20)
	}
	tally.Attack(t, "small batches whose decompressed messages stay in memory", batches, succeeded)
}

// TestAttackConcurrentDecompression has 16 connections send one such batch each at the same time.
// The test measures the heap, so it does not run in parallel.
func TestAttackConcurrentDecompression(t *testing.T) {
	c := newCluster(t, messaging.Options{})
	const connections, limit = 16, 400 << 20
	name := c.create("t", 0)
	batch := bomb()
	before := liveHeap()
	var peak atomic.Int64
	stop := make(chan struct{})
	var sampling, sending sync.WaitGroup
	sampling.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				peak.Store(max(peak.Load(), int64(heapObjects())-before))
				runtime.Gosched()
			}
		}
	})
	for range connections {
		own := bytes.Clone(batch)
		sending.Go(func() {
			if err := c.appendBatch(name, own); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	close(stop)
	sampling.Wait()
	succeeded := 0
	if peak.Load() > limit {
		succeeded = 1
		t.Errorf("heap: got a peak of %d MiB with %d connections, want at most %d", peak.Load()>>20, connections,
			limit>>20)
	}
	tally.Attack(t, "connections that decompress small batches at the same time", connections, succeeded)
}
