package streamapi_test

import (
	"bytes"
	"encoding/binary"
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

	"freshet/internal/engine/pebble"
	"freshet/internal/messaging"
	"freshet/internal/streamapi"
	"freshet/test/tally"
)

// noise is text that does not compress.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// flip changes one bit of the file that has the text, behind it.
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
	t.Fatalf("no file of %s has %q", dir, text)
}

// TestFaultDamagedBatch flips a bit of a stored batch: reading it is an error, and
// those before and behind it are read, as they were written.
func TestFaultDamagedBatch(t *testing.T) {
	t.Parallel()
	const batches, each = 40, 1 // a batch fills a block of the store
	fs := vfs.NewMem()
	eng, err := pebble.Open("store", pebble.Options{FS: fs, MemTableBytes: 4 << 20, Splitter: messaging.Splitter{}})
	if err != nil {
		t.Fatal(err)
	}
	w := worldOn(t, eng)
	w.partitioned("orders", 1)
	rng := rand.New(rand.NewPCG(1, 2))
	var sent [][]byte
	producer := w.client(kgo.DefaultProduceTopic("orders"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for b := range batches {
		var records []*kgo.Record
		for i := range each {
			value := append(fmt.Appendf(nil, "batch %d record %d;", b, i), noise(rng, 36_000)...)
			sent = append(sent, value)
			records = append(records, &kgo.Record{Value: value})
		}
		w.ok(producer.ProduceSync(short(t), records...).FirstErr())
	}
	rounds := 3
	if tally.Long() {
		rounds = 10
	}
	fault := tally.Fault{Name: "bit flipped in a stored batch"}
	for round := range rounds {
		dir, hit := fmt.Sprint("copy", round), rng.IntN(batches-5)
		w.ok(eng.Checkpoint(t.Context(), dir))
		flip(t, fs, dir, fmt.Sprintf("batch %d record 0;", hit))
		fault.Injected++
		copied, err := pebble.Open(dir, pebble.Options{FS: fs, Splitter: messaging.Splitter{}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		damaged := worldOn(t, copied)
		refused := damaged.readAll("orders", sent, &fault)
		if len(refused) == 0 || refused[0] > int64(hit*each) || refused[len(refused)-1] < int64(hit*each) || len(refused) > 2*each {
			t.Errorf("batch %d: got offsets %v refused, want its own and few besides", hit, refused)
		}
		fault.Recovery = max(fault.Recovery, time.Since(began))
		if found, _ := copied.DamagedMessages(); found == 0 {
			t.Error("damage was not counted")
		}
	}
	fault.Record(t)
}

// readAll reads a topic to its end, skipping what is refused, and returns the
// offsets that were.
func (w *world) readAll(topic string, want [][]byte, fault *tally.Fault) (refused []int64) {
	w.Helper()
	r := w.wire(w.token)
	for at := int64(0); at < int64(len(want)); {
		answer := ask[*kmsg.FetchResponse](r, fetchFrom(0, -1, map[string][]int64{topic: {at}}))
		part := &answer.Topics[0].Partitions[0]
		if part.ErrorCode != 0 {
			if part.ErrorCode != 2 {
				w.Fatalf("offset %d: got code %d, want 2", at, part.ErrorCode)
			}
			refused = append(refused, at)
			at++
			continue
		}
		next := at
		for rest := part.RecordBatches; len(rest) >= 61; {
			size := 12 + int(binary.BigEndian.Uint32(rest[8:]))
			first, last := int64(binary.BigEndian.Uint64(rest)), int64(binary.BigEndian.Uint32(rest[23:]))
			for i := first; i <= first+last; i++ {
				fault.Checked++
				if !bytes.Contains(rest[:size], want[i]) {
					fault.Wrong++
				}
			}
			next, rest = first+last+1, rest[size:]
		}
		if next == at {
			w.Fatalf("offset %d: got nothing and no error", at)
		}
		at = next
	}
	return refused
}

// TestFaultDiskFullStream fills the disk under producers: they are told, commits
// and reading go on, and so does everything once there is room.
func TestFaultDiskFullStream(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	free := func(n uint64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40, UsedBytes: 1<<40 - n})
	}
	free(1 << 30)
	eng, err := pebble.Open("store", pebble.Options{FS: fs, MinFreeBytes: 64 << 20, MemTableBytes: 1 << 20, Splitter: messaging.Splitter{}})
	if err != nil {
		t.Fatal(err)
	}
	w := worldOn(t, eng)
	w.partitioned("orders", 1)
	w.send("orders", 0, "before")
	fault := tally.Fault{Name: "disk full under Kafka clients", Injected: 1}
	producer, admin := w.client(kgo.DefaultProduceTopic("orders"), kgo.RecordRetries(0)), kadm.NewClient(w.client())
	acked := 1
	until := func(want bool) {
		t.Helper()
		for started := time.Now(); time.Since(started) < 15*time.Second; {
			err := producer.ProduceSync(short(t), &kgo.Record{Value: []byte("x")}).FirstErr()
			if err == nil {
				acked++
			} else if !strings.Contains(err.Error(), "KAFKA_STORAGE_ERROR") {
				fault.Wrong++
				t.Errorf("on a full disk: got %v, want KAFKA_STORAGE_ERROR", err)
				return
			}
			if (err == nil) == want {
				return
			}
		}
		t.Fatalf("disk full %t: nothing has changed after 15 s", !want)
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
	reader := w.client(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fault.Checked = acked
	if got := poll(t, reader, acked); len(got) != acked {
		fault.Lost = acked - len(got)
	}
	fault.Record(t)
}

// TestAttackHalfFrames: hundreds of connections send half of something, or do not
// read what they asked for. Others are served, and those that stall are closed.
func TestAttackHalfFrames(t *testing.T) {
	t.Parallel()
	connections := 150
	if tally.Long() {
		connections = 900
	}
	w := newWorld(t, func(o *streamapi.Options) { o.Limits.WriteStall = 500 * time.Millisecond })
	w.partitioned("orders", 1)
	for range 8 {
		w.send("orders", 0, string(noise(rand.New(rand.NewPCG(3, 4)), 900_000)))
	}
	var stalled []net.Conn
	for i := range connections {
		var conn net.Conn
		switch i % 3 {
		case 0: // half a frame before authentication
			r := &wire{world: w}
			r.dial(w.address)
			conn = r.conn
			_, _ = conn.Write([]byte{0, 0, 1, 0, 0, 18, 0})
		case 1: // half a large frame
			r := w.wire(w.token)
			conn = r.conn
			_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, 1<<20), make([]byte, 100)...))
		case 2: // asks for much and reads nothing
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
		t.Errorf("beside them: got %d records, want 8", len(got))
	}
	w.send("orders", 0, "still here")
	for i, conn := range stalled {
		if i%3 != 1 {
			continue // strangers have ten seconds, and readers their buffers
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
			successes++
			t.Errorf("connection %d: still open, want it closed", i)
		}
	}
	tally.Attack(t, "stream: half frames and slow readers", connections, successes)
}
