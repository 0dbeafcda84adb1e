package kafkaapi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/pebble"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/test/stamp"
	"freshet/test/tally"
)

// noise returns text that does not compress.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// flip changes one bit after the text in the file that contains it.
func flip(t *testing.T, fs vfs.FS, dir, text string) {
	t.Helper()
	files, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := fs.PathJoin(dir, name)
		file, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(file)
		_ = file.Close()
		at := bytes.Index(data, []byte(text))
		if err != nil || at < 0 {
			continue
		}
		data[at+len(text)+100] ^= 4
		changed, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = changed.Write(data)
			_ = changed.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no file of %s contains %q", dir, text)
}

// faultTopics are the topics of these tests, with one partition each. One consumer reads all of
// them.
var faultTopics = []string{"orders", "payments", "refunds"}

// faultValue returns the value of a record.
func faultValue(topic string, n, size int) []byte {
	return stamp.Stamp{Topic: topic, Partition: 0, Writer: "producer", Number: n}.Value(size)
}

// TestFaultDamagedBatch flips a bit of a stored batch and checks that reading it is an error, and
// that all other batches are read as they were written.
func TestFaultDamagedBatch(t *testing.T) {
	t.Parallel()
	const batches = 40 // one record each; a batch fills a block of the store
	fs := vfs.NewMem()
	eng, err := pebble.Open("store", pebble.Options{FS: fs, MemTableBytes: 4 << 20, Splitter: messaging.Splitter{}})
	if err != nil {
		t.Fatal(err)
	}
	w := newHarnessOn(t, eng)
	rng := rand.New(rand.NewPCG(1, 2))
	producer := w.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
	for _, topic := range faultTopics {
		w.partitioned(topic, 1)
		for b := range batches {
			record := &kgo.Record{Topic: topic, Value: faultValue(topic, b, 36_000)}
			w.ok(producer.ProduceSync(short(t), record).FirstErr())
		}
	}
	rounds := 3
	if tally.Long() {
		rounds = 10
	}
	fault := tally.Fault{Name: "bit flipped in a stored batch"}
	for round := range rounds {
		// The end of the last topic is in the store's write-ahead log, whose damage is another
		// fault.
		dir, hit, topic := fmt.Sprint("copy", round), rng.IntN(batches-5), faultTopics[round%2]
		w.ok(eng.Checkpoint(t.Context(), dir))
		head, _, _ := bytes.Cut(faultValue(topic, hit, 36_000), []byte("\n"))
		flip(t, fs, dir, string(head))
		fault.Injected++
		copied, err := pebble.Open(dir, pebble.Options{FS: fs, Splitter: messaging.Splitter{}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		refused := newHarnessOn(t, copied).readAll(batches, &fault)
		want, found := fmt.Sprintf("%s %d", topic, hit), false
		for _, r := range refused {
			found = found || r == want
		}
		if !found || len(refused) > 2 {
			t.Errorf("got errors at %v, want %s and few others", refused, want)
		}
		fault.Recovery = max(fault.Recovery, time.Since(began))
		if found, _ := copied.DamagedMessages(); found == 0 {
			t.Error("damage was not counted, want it counted")
		}
	}
	fault.Record(t)
}

// readAll reads all topics to their end with requests for all of them. It skips unreadable batches
// and returns their topics and offsets.
func (w *harness) readAll(end int64, fault *tally.Fault) (refused []string) {
	w.Helper()
	r := w.wire(w.token)
	at := map[string]int64{}
	for {
		from := map[string][]int64{}
		for _, topic := range faultTopics {
			if at[topic] < end {
				from[topic] = []int64{at[topic]}
			}
		}
		if len(from) == 0 {
			return refused
		}
		request := fetchFrom(0, -1, from)
		for i := range request.Topics { // several topics fit into a response
			request.Topics[i].Partitions[0].PartitionMaxBytes = 256 << 10
		}
		answer, progress := roundTrip[*kmsg.FetchResponse](r, request), false
		for i := range answer.Topics {
			topic, part := answer.Topics[i].Topic, &answer.Topics[i].Partitions[0]
			before := at[topic]
			switch part.ErrorCode {
			case 0:
				at[topic] = readBatches(part.RecordBatches, topic, before, fault)
			case 2:
				refused = append(refused, fmt.Sprintf("%s %d", topic, before))
				at[topic]++
			default:
				w.Fatalf("%s, offset %d: got code %d, want 2", topic, before, part.ErrorCode)
			}
			progress = progress || at[topic] > before
		}
		if !progress {
			w.Fatalf("offsets %v: got nothing and no error", from)
		}
	}
}

// readBatches checks batches of one record each and returns the offset after them.
func readBatches(rest []byte, topic string, next int64, fault *tally.Fault) int64 {
	for len(rest) >= 61 {
		size := 12 + int(binary.BigEndian.Uint32(rest[8:]))
		next = int64(binary.BigEndian.Uint64(rest))
		fault.Checked++
		begin := max(0, bytes.Index(rest[:size], []byte("stamp\t")))
		value := rest[begin : size-1] // the last byte is the number of headers
		got, err := stamp.Check(value, topic, 0)
		switch {
		case errors.Is(err, stamp.ErrForeign):
			fault.Foreign++
		case err != nil || int64(got.Number) != next:
			fault.Wrong++
		}
		next, rest = next+1, rest[size:]
	}
	return next
}

// TestFaultDiskFullKafka checks that producers get an error while the disk is full, that commits
// and reads still work, and that everything works again once space is free.
func TestFaultDiskFullKafka(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	free := func(n uint64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40, UsedBytes: 1<<40 - n})
	}
	free(1 << 30)
	eng, err := pebble.Open("store",
		pebble.Options{FS: fs, MinFreeBytes: 64 << 20, MemTableBytes: 1 << 20, Splitter: messaging.Splitter{}})
	if err != nil {
		t.Fatal(err)
	}
	w := newHarnessOn(t, eng)
	for _, topic := range faultTopics {
		w.partitioned(topic, 1)
	}
	fault := tally.Fault{Name: "disk full under Kafka clients", Injected: 1}
	producer, admin := w.client(kgo.RecordRetries(0)), kadm.NewClient(w.client())
	sent, acked := 0, map[string]bool{}
	send := func(size int) error {
		topic := faultTopics[sent%len(faultTopics)]
		value := faultValue(topic, sent, size)
		sent++
		err := producer.ProduceSync(short(t), &kgo.Record{Topic: topic, Value: value}).FirstErr()
		if err == nil {
			acked[string(value)] = true
		}
		return err
	}
	for range 10 * len(faultTopics) { // more than 64 KiB, so that a Fetch response has several parts
		w.ok(send(70 << 10))
	}
	until := func(want bool) {
		t.Helper()
		for started := time.Now(); time.Since(started) < 15*time.Second; {
			err := send(100)
			if err != nil && !strings.Contains(err.Error(), "KAFKA_STORAGE_ERROR") {
				fault.Wrong++
				t.Errorf("on a full disk: got %v, want KAFKA_STORAGE_ERROR", err)
				return
			}
			if (err == nil) == want {
				return
			}
		}
		t.Fatalf("disk full %t: no change after 15 s", !want)
	}
	free(63 << 20)
	until(false)
	offsets := make(kadm.Offsets)
	offsets.AddOffset("orders", 0, 1, -1)
	w.ok(admin.CommitAllOffsets(short(t), "team", offsets))
	committed, err := admin.FetchOffsets(short(t), "team")
	if o, ok := committed.Lookup("orders", 0); err != nil || !ok || o.At != 1 {
		t.Errorf("committed on a full disk: got %+v, %v; want 1", o, err)
	}
	free(1 << 30)
	began := time.Now()
	until(true)
	fault.Recovery = time.Since(began)
	reader := w.client(kgo.ConsumeTopics(faultTopics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(250<<10))
	fault.Checked = len(acked)
	var count stamp.Count
	for _, record := range poll(t, reader, len(acked)) {
		_, err := stamp.Check(record.Value, record.Topic, record.Partition)
		count.Add(err)
		delete(acked, string(record.Value))
	}
	fault.Lost, fault.Foreign = len(acked), count.Foreign
	fault.Wrong += count.Damaged
	fault.Record(t)
}

// TestAttackHalfFrames opens hundreds of connections that send incomplete frames or do not read
// responses. It checks that other clients are served and that stalled connections are closed.
func TestAttackHalfFrames(t *testing.T) {
	t.Parallel()
	connections := 150
	if tally.Long() {
		connections = 900
	}
	w := newHarness(t, func(o *kafkaapi.Options) { o.Limits.StallTimeout = 500 * time.Millisecond })
	w.partitioned("orders", 1)
	for range 8 {
		w.send("orders", 0, string(noise(rand.New(rand.NewPCG(3, 4)), 900_000)))
	}
	var stalled []net.Conn
	for i := range connections {
		var conn net.Conn
		switch i % 3 {
		case 0: // half a frame before authentication
			r := &rawClient{harness: w}
			r.dial(w.address)
			conn = r.conn
			_, _ = conn.Write([]byte{0, 0, 1, 0, 0, 18, 0})
		case 1: // half a large frame
			r := w.wire(w.token)
			conn = r.conn
			_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, 1<<20), make([]byte, 100)...))
		case 2: // requests large responses and reads nothing
			r := w.wire(w.token)
			conn = r.conn
			request := fetchFrom(0, -1, map[string][]int64{"orders": {0}})
			request.MaxBytes, request.Topics[0].Partitions[0].PartitionMaxBytes = 50<<20, 50<<20
			_, _ = conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 1))
		}
		stalled = append(stalled, conn)
	}
	successes := 0
	reader := w.client(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if got := poll(t, reader, 8); len(got) != 8 {
		successes++
		t.Errorf("other client: got %d records, want 8", len(got))
	}
	w.send("orders", 0, "still here")
	for i, conn := range stalled {
		if i%3 != 1 {
			continue // unauthenticated clients have ten seconds, slow readers their buffers
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
			successes++
			t.Errorf("connection %d: still open, want it closed", i)
		}
	}
	tally.Attack(t, "stream: half frames and slow readers", connections, successes)
}
