package messaging_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
)

// search runs a search to its end and returns the payloads that match, and the last progress.
func (c *cluster) search(name names.Topic, text string, opts messaging.SearchOptions) ([]string, messaging.Progress) {
	c.t.Helper()
	var err error
	opts.Filter, err = filter.Compile(text)
	c.do(err)
	s, err := c.Searcher.Search(c.t.Context(), name, opts)
	c.do(err)
	var payloads []string
	for {
		found, progress, done, err := s.Next(c.t.Context())
		c.do(err)
		for i := range found {
			payloads = append(payloads, string(found[i].Payload))
		}
		if done {
			return payloads, progress
		}
	}
}

// kafkaBatch returns a batch with one record per value, whose keys are their indexes.
func kafkaBatch(values ...[]byte) []byte {
	b := records.NewBuilder(nil, 0)
	for i, value := range values {
		b.Add(&records.Record{Delta: int32(i), Time: 1000, Key: fmt.Append(nil, "k", i), Value: value})
	}
	return b.Finish()
}

func TestSearch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 3)
	for i := range 9 {
		m := text(fmt.Sprintf(`{"total":%d}`, i))
		m.Key = fmt.Sprint("k", i)
		c.produce(name, m)
	}
	c.produce(name, text("not JSON"))
	got, progress := c.search(name, `payload.total >= 7`, messaging.SearchOptions{})
	if len(got) != 2 || progress.Scanned != 10 || progress.Matched != 2 || progress.Failed != 1 ||
		progress.Total != 10 || progress.Failure == nil {
		t.Errorf("got %q and %+v, want 2 of 10 messages and one failure", got, progress)
	}
	if got, progress = c.search(name, `true`, messaging.SearchOptions{Limit: 4}); len(got) != 4 {
		t.Errorf("with a limit of 4: got %q", got)
	}
	rest, progress := c.search(name, `true`, messaging.SearchOptions{Cursor: progress.Cursor})
	if len(rest) != 6 || progress.Total != 6 {
		t.Errorf("after the cursor: got %q and %+v, want the other 6 messages", rest, progress)
	}
	if got, _ := c.search(name, `partition != 1`, messaging.SearchOptions{Partitions: []int32{1}}); len(got) != 0 {
		t.Errorf("of partition 1: got %q, want nothing", got)
	}
	if got, _ := c.search(name, `true`, messaging.SearchOptions{Since: time.Now().Add(time.Hour)}); len(got) != 0 {
		t.Errorf("from the future: got %q, want nothing", got)
	}
	if got, _ := c.search(name, `true`, messaging.SearchOptions{Until: time.UnixMilli(1)}); len(got) != 0 {
		t.Errorf("until 1970: got %q, want nothing", got)
	}
	all, err := filter.Compile(`true`)
	c.do(err)
	other := c.create("other", 0)
	for _, cursor := range []string{progress.Cursor, "x", "%", "AA"} {
		_, err := c.Searcher.Search(t.Context(), other, messaging.SearchOptions{Filter: all, Cursor: cursor})
		wantErr(t, err, messaging.ErrCursor)
	}
	_, err = c.Searcher.Search(t.Context(), topic("missing"), messaging.SearchOptions{Filter: all})
	wantErr(t, err, messaging.ErrNoTopic)
}

// TestSearchBatches searches batches of Kafka producers, also from the middle of one.
func TestSearchBatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	for range 3 {
		c.do(c.appendBatch(name, kafkaBatch([]byte(`{"n":0}`), []byte(`{"n":1}`), nil, []byte(`{"n":3}`))))
	}
	got, progress := c.search(name, `payload == null || payload.n == 3`, messaging.SearchOptions{})
	if len(got) != 6 || progress.Scanned != 12 || progress.Failed != 0 {
		t.Errorf("got %q and %+v, want 6 of 12 records", got, progress)
	}
	got, progress = c.search(name, `key == "k1"`, messaging.SearchOptions{Limit: 1})
	if len(got) != 1 || progress.Scanned != 2 {
		t.Errorf("got %q and %+v, want the second record", got, progress)
	}
	if got, _ = c.search(name, `offset >= 1`, messaging.SearchOptions{Cursor: progress.Cursor}); len(got) != 10 {
		t.Errorf("after the cursor in a batch: got %d records, want 10", len(got))
	}
}

// TestSearchWithTheTopicsSchema searches Avro messages by the version of the topic's schema with which
// they were written.
func TestSearchWithTheTopicsSchema(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Schemas: fakeRegistry{}})
	name := c.create("t", 0)
	_, err := c.Schemas.Add(t.Context(), name, messaging.Schema{
		Type: messaging.SchemaAvro, Text: `{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}`,
	}, true)
	c.do(err)
	c.produce(name, text("\x06abc"))
	c.produce(name, text("\x06abd"))
	if got, _ := c.search(name, `payload.s == "abd"`, messaging.SearchOptions{}); len(got) != 1 {
		t.Errorf("got %q, want one message", got)
	}
	registered := c.create("registered", 0)
	c.produce(registered, text("\x00\x00\x00\x00\x07"+`{"s":"abd"}`))
	if got, _ := c.search(registered, `payload.s == "abd"`, messaging.SearchOptions{}); len(got) != 1 {
		t.Errorf("with a schema of the registry: got %q, want one message", got)
	}
}

// BenchmarkSearch reads 100,000 Avro records of 1 KiB in batches of 100. One operation is one record.
func BenchmarkSearch(b *testing.B) {
	const batches, size = 1000, 100
	c := newCluster(b, messaging.Options{})
	name := c.create("t", 0)
	_, err := c.Schemas.Add(b.Context(), name, messaging.Schema{Type: messaging.SchemaAvro, Text: `{"type":"record",
		"name":"R","fields":[{"name":"note","type":"string"},{"name":"total","type":"double"}]}`}, true)
	c.do(err)
	note := strings.Repeat("x", 1000)
	datum := append([]byte{0xd0, 0x0f}, note...)
	for shift := 0; shift < 64; shift += 8 {
		datum = append(datum, byte(math.Float64bits(99)>>shift))
	}
	values := make([][]byte, size)
	for i := range values {
		values[i] = datum
	}
	batch := kafkaBatch(values...)
	for range batches {
		c.do(c.appendBatch(name, batch))
	}
	b.SetBytes(int64(len(datum)))
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= batches * size {
		if got, progress := c.search(name, `has(payload.total) && payload.total > 100.0`,
			messaging.SearchOptions{}); len(got) != 0 {
			b.Fatalf("got %d matches and %+v, want none", len(got), progress)
		}
	}
}
