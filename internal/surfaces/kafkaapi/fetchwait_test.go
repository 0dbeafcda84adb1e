package kafkaapi_test

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

// TestFetchWaitsForEnough checks that a response below MinBytes is sent at the end of the wait and
// not before, and that a response with MinBytes is sent immediately.
func TestFetchWaitsForEnough(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("slow", 2)
	w.send("slow", 0, "little")
	ask := func(least int32, timeout time.Duration) (bytes int, took time.Duration) {
		request := fetchFrom(0, -1, map[string][]int64{"slow": {0, 0}})
		request.MinBytes, request.MaxWaitMillis = least, int32(timeout.Milliseconds())
		began := time.Now()
		response := roundTrip[*kmsg.FetchResponse](w.wire(w.token), request)
		for _, p := range response.Topics[0].Partitions {
			bytes += len(p.RecordBatches)
		}
		return bytes, time.Since(began)
	}
	if bytes, took := ask(1, time.Minute); bytes == 0 || took >= time.Minute {
		t.Errorf("one byte: got %d after %s, want it immediately", bytes, took)
	}
	for _, partition := range []int32{0, 1} { // with and without an empty partition
		if bytes, took := ask(100_000, 300*time.Millisecond); bytes == 0 || took < 300*time.Millisecond {
			t.Errorf("more than stored: got %d after %s, want all stored bytes after 300 ms", bytes, took)
		}
		w.send("slow", partition, "little")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if bytes, took := ask(5_000, time.Minute); bytes < 5_000 || took >= time.Minute {
			t.Errorf("produced during the wait: got %d after %s, want 5000 immediately", bytes, took)
		}
	}()
	for range 10 {
		w.send("slow", 0, strings.Repeat("x", 600))
	}
	<-done
}

// countingEngine counts reads of partitions.
type countingEngine struct {
	engine.Engine
	reads atomic.Int64
}

func (e *countingEngine) ReadBatches(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	e.reads.Add(1)
	return e.Engine.ReadBatches(ctx, id, partition, from, visit)
}

// TestFetchReadsMuchRarely checks that a large result is read again at a bounded rate while a
// client waits for more, regardless of how often messages arrive.
func TestFetchReadsMuchRarely(t *testing.T) {
	t.Parallel()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	counting := &countingEngine{Engine: eng}
	w := newHarnessOn(t, counting)
	w.partitioned("much", 1)
	producer := w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 18 {
		w.ok(producer.ProduceSync(t.Context(), &kgo.Record{Topic: "much", Value: make([]byte, 900_000)}).FirstErr())
	}
	over := make(chan struct{})
	dripping := make(chan struct{})
	go func() {
		defer close(dripping)
		for {
			select {
			case <-over:
				return
			default:
				_ = producer.ProduceSync(t.Context(), &kgo.Record{Topic: "much", Value: []byte("drop")})
			}
		}
	}()
	request := fetchFrom(0, -1, map[string][]int64{"much": {0}})
	request.MinBytes, request.MaxBytes, request.MaxWaitMillis = 50<<20, 55<<20, 1000
	request.Topics[0].Partitions[0].PartitionMaxBytes = 55 << 20
	reader := &rawClient{harness: w, token: w.token, maxResponse: 64 << 20}
	reader.open()
	before := counting.reads.Load()
	roundTrip[*kmsg.FetchResponse](reader, request)
	reads := counting.reads.Load() - before
	close(over)
	<-dripping
	if reads > 7 { // 16 MiB each: one immediately, four per second
		t.Errorf("fetch of 16 MiB that waits a second for 50 MiB: got %d reads, want at most 7", reads)
	}
}

// TestResponsesKeepTheirOrder sends several requests in one write, of which some are completed
// immediately and some wait.
func TestResponsesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("order", 1)
	r := w.wire(w.token)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group = 3, "nobody"
	slow := fetchFrom(0, -1, map[string][]int64{"order": {0}})
	slow.MinBytes, slow.MaxWaitMillis = 1, 200
	all := kmsg.NewPtrMetadataRequest()
	all.Version = 9
	var frames []byte
	want := []int32{}
	for i, request := range []kmsg.Request{beat, slow, beat, beat, all, beat, slow, beat} {
		frames = append(frames, kmsg.NewRequestFormatter(kmsg.FormatterClientID("order")).AppendRequest(nil, request,
			int32(100+i))...)
		want = append(want, int32(100+i))
	}
	if _, err := r.conn.Write(frames); err != nil {
		t.Fatal(err)
	}
	got := []int32{}
	for range want {
		var head [4]byte
		if _, err := io.ReadFull(r.in, head[:]); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r.in, body); err != nil {
			t.Fatal(err)
		}
		got = append(got, int32(binary.BigEndian.Uint32(body)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("correlation ids of the responses: got %v, want %v", got, want)
	}
}
