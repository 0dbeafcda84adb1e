package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/internal/storage/engine"
)

var update = flag.Bool("update", false, "rewrite testdata/calls.golden")

// gob numbers the types of a process in the order in which it first sees them. Encoding a
// request and a reply before any test runs makes their bytes the same in every run.
var (
	_, _ = encode(&request{})
	_, _ = encode(&reply{})
)

const goldenFile = "testdata/calls.golden"

// TestCallsKeepTheirEncoding compares the frames of every call with those of earlier
// versions, because members of different versions call each other during an upgrade. The
// first two lines of the golden file are the types that every request and reply begins
// with; then follows a line for each call: its name, the rest of the request and of the
// reply, and the result at the caller.
func TestCallsKeepTheirEncoding(t *testing.T) {
	t.Parallel()
	recorded := recordCalls(t)
	if *update {
		if err := os.WriteFile(goldenFile, []byte(strings.Join(recorded, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden := readGolden(t)
	if len(recorded) != len(golden) {
		t.Fatalf("got %d lines, want %d", len(recorded), len(golden))
	}
	for i := range golden {
		if recorded[i] != golden[i] {
			t.Errorf("line %d:\ngot  %s\nwant %s", i+1, recorded[i], golden[i])
		}
	}
}

// TestTheServerExecutesCallsOfEarlierVersions sends the recorded requests and compares the
// replies with the recorded ones.
func TestTheServerExecutesCallsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	types := unhex(t, strings.TrimPrefix(golden[0], "request "))
	for _, line := range golden[2:] {
		fields := strings.Split(line, " ")
		body := append(slices.Clone(types), unhex(t, fields[1])...)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		response := httptest.NewRecorder()
		NewServer(answers{}, slog.New(slog.DiscardHandler)).ServeHTTP(response,
			httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(append(frame, 1)))) // 1 confirms deliveries
		if got := fmt.Sprintf("%x", withoutTypes(response.Body.Bytes(), &reply{})); got != fields[2] {
			t.Errorf("%s:\ngot the reply %s\nwant          %s", fields[0], got, fields[2])
		}
	}
}

// TestCallsOfNewerVersionsAreRejected sends a call that this version does not have.
func TestCallsOfNewerVersionsAreRejected(t *testing.T) {
	t.Parallel()
	got := NewServer(answers{}, slog.New(slog.DiscardHandler)).handle(t.Context(), &request{Method: 255})
	if got.Failure == nil || !errors.Is(got.Failure.err(), engine.ErrNewerFormat) {
		t.Errorf("got the reply %+v, want %v", got, engine.ErrNewerFormat)
	}
}

func readGolden(t *testing.T) []string {
	t.Helper()
	golden, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(golden)), "\n")
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// typesOf returns the type definitions with which the encoding of a value begins.
func typesOf(value any) []byte {
	var b bytes.Buffer
	encoder := gob.NewEncoder(&b)
	_ = encoder.Encode(value)
	first := b.Len()
	_ = encoder.Encode(value) // without the types, which were sent already
	return b.Bytes()[:2*first-b.Len()]
}

// withoutTypes returns a frame without its length and its type definitions, or all of it
// when these differ from those of value.
func withoutTypes(frame []byte, value any) []byte {
	if rest, ok := bytes.CutPrefix(frame[4:], typesOf(value)); ok {
		return rest
	}
	return frame
}

// recordCalls makes every call and returns the lines of the golden file.
func recordCalls(t *testing.T) []string {
	t.Helper()
	var mu sync.Mutex
	var sent, received []byte
	inner := NewServer(answers{}, slog.New(slog.DiscardHandler))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var in, out bytes.Buffer
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &in), r.Body}
		inner.ServeHTTP(&tee{w, &out}, r)
		sent, received = in.Bytes(), out.Bytes()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := &Client{Peers: recordedPeer{server}}
	shard := client.Shard("c", 2, engine.Owner{Member: "a", Epoch: 7})
	lines := []string{fmt.Sprintf("request %x", typesOf(&request{})), fmt.Sprintf("reply %x", typesOf(&reply{}))}
	for _, c := range calls {
		got := c.do(engine.AllowWhenDiskFull(t.Context()), shard)
		mu.Lock()
		sent = sent[:4+binary.BigEndian.Uint32(sent)] // without the confirmation of deliveries
		lines = append(lines, fmt.Sprintf("%s %x %x %s", c.name, withoutTypes(sent, &request{}),
			withoutTypes(received, &reply{}), got))
		mu.Unlock()
	}
	return lines
}

// recordedPeer is the connection to the member whose calls are recorded.
type recordedPeer struct{ *httptest.Server }

func (p recordedPeer) Call(string) (via *http.Client, url string, err error) {
	return p.Client(), p.URL, nil
}

// tee copies what is written to a response.
type tee struct {
	http.ResponseWriter
	out *bytes.Buffer
}

func (w *tee) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *tee) Write(b []byte) (int, error) {
	w.out.Write(b)
	return w.ResponseWriter.Write(b)
}

var goldenTime = time.Unix(1_700_000_000, 5).UTC()

var (
	goldenTopic = engine.TopicConfig{
		Partitions: 3, RetainAge: time.Hour, RetainBytes: 4, TTL: time.Minute, BacklogBytes: 5, BacklogEvict: true,
		Deduplicate: true, MaxUnacked: 6, Terminated: true,
	}
	goldenSubscription = engine.SubscriptionConfig{
		Lease: time.Second, MaxDeliveries: 2, DeadLetterTopic: 9, Properties: map[string]string{"k": "v"},
		Filter: "f",
	}
	goldenID       = engine.MessageID{Topic: 1, Partition: 2, Entry: 3}
	goldenPosition = engine.Position{Kind: engine.AtTime, ID: goldenID, Time: goldenTime, Count: 4}
	goldenMessage  = engine.Message{
		Payload: []byte("payload"), NullPayload: true, Key: "key", EmptyKey: true,
		Properties: []engine.Property{{Key: "p", Value: "q", Null: true}}, EventTime: 5, SchemaVersion: 6,
		Producer: "producer", Sequence: 7, HasSequence: true, DeliverAt: 8,
		Dedup: engine.DedupKey{Producer: "d", Sequence: 9},
	}
	goldenRecord = engine.Record{
		Message: goldenMessage, ID: goldenID, PublishTime: 11, Run: engine.KafkaRecordBatch,
	}
	goldenRead = engine.ReadRequest{
		Partition: 1, From: 2, FromEach: []uint64{3, 4}, Since: goldenTime, Subscription: "s", Max: 5, MaxBytes: 6,
	}
	goldenReceive     = engine.ReceiveRequest{Max: 1, MaxBytes: 2, Lease: time.Minute, Partition: 3}
	goldenSettlements = []engine.Settlement{{ID: goldenID, Action: engine.Nack, Delay: time.Second, Delivery: 2}}
	goldenPositions   = []engine.PartitionPosition{{Topic: 1, Partition: 2, Entry: 3}}
)

// calls are all calls of a shard, each with all its arguments set.
var calls = []struct {
	name string
	do   func(context.Context, *Shard) string
}{
	{"CreateTopic", func(ctx context.Context, s *Shard) string {
		return result("", s.CreateTopic(ctx, 1, goldenTopic))
	}},
	{"ConfigureTopic", func(ctx context.Context, s *Shard) string {
		return result("", s.ConfigureTopic(ctx, 1, goldenTopic))
	}},
	{"DeleteTopic", func(ctx context.Context, s *Shard) string { return result("", s.DeleteTopic(ctx, 1)) }},
	{"DescribeTopic", func(ctx context.Context, s *Shard) string { return result(s.DescribeTopic(ctx, 1)) }},
	{"ListTopics", func(ctx context.Context, s *Shard) string { return result(s.ListTopics(ctx, 1, 5)) }},
	{"Append", func(ctx context.Context, s *Shard) string {
		return result(s.Append(ctx, 1, 2, []engine.Message{goldenMessage}))
	}},
	{"Read", func(ctx context.Context, s *Shard) string { return result(s.Read(ctx, 1, goldenRead)) }},
	{"CreateSubscription", func(ctx context.Context, s *Shard) string {
		return result("", s.CreateSubscription(ctx, 1, "s", goldenSubscription, goldenPosition))
	}},
	{"ConfigureSubscription", func(ctx context.Context, s *Shard) string {
		return result("", s.ConfigureSubscription(ctx, 1, "s", goldenSubscription))
	}},
	{"DeleteSubscription", func(ctx context.Context, s *Shard) string {
		return result("", s.DeleteSubscription(ctx, 1, "s"))
	}},
	{"ResetSubscription", func(ctx context.Context, s *Shard) string {
		return result("", s.ResetSubscription(ctx, 1, "s", goldenPosition))
	}},
	{"Receive", func(ctx context.Context, s *Shard) string { return result(s.Receive(ctx, 1, "s", goldenReceive)) }},
	{"Settle", func(ctx context.Context, s *Shard) string {
		return result("", s.Settle(ctx, 1, "s", goldenSettlements))
	}},
	{"ReadBatches", func(ctx context.Context, s *Shard) string {
		var visited []engine.StoredValue
		extent, err := s.ReadBatches(ctx, 1, 2, 3, func(v *engine.StoredValue) (bool, error) {
			visited = append(visited, *v)
			return true, nil
		})
		return result(fmt.Sprint(extent, visited), err)
	}},
	{"ReadBatches-extent", func(ctx context.Context, s *Shard) string {
		return result(s.ReadBatches(ctx, 1, 2, 3, nil))
	}},
	{"WaitEntries", func(ctx context.Context, s *Shard) string {
		return result("", s.WaitEntries(ctx, goldenPositions))
	}},
	{"FindByTime", func(ctx context.Context, s *Shard) string { return result(s.FindByTime(ctx, 1, 2, 3)) }},
	{"FindNewest", func(ctx context.Context, s *Shard) string { return result(s.FindNewest(ctx, 1, 2)) }},
	{"Attributes", func(ctx context.Context, s *Shard) string {
		var visited []engine.Attribute
		err := s.Attributes(ctx, 1, 2, []byte("k"), func(a engine.Attribute) error {
			visited = append(visited, a)
			return nil
		})
		return result(visited, err)
	}},
	{"Totals", func(ctx context.Context, s *Shard) string { // Shard.Totals sends a timeout, which varies
		a, err := s.call(ctx, request{Method: 20})
		if err != nil {
			return result("", err)
		}
		return result(a.Totals, nil)
	}},
	{"Trim", func(ctx context.Context, s *Shard) string { return result(s.Trim(ctx, 1, 2, 3)) }},
}

func result[T any](value T, err error) string { return fmt.Sprintf("%+v, %v", value, err) }

// answers is a member and its engine, which checks the arguments of calls and returns
// fixed values.
type answers struct{ engine.Engine }

func (a answers) Owned(string, int) (engine.Engine, engine.Owner, error) {
	return a, engine.Owner{Member: "a", Epoch: 7}, nil
}

// same returns an error when the arguments of a call are not those that were sent.
func same(got, want any) error {
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		return errors.New("got the arguments " + g + ", want " + w)
	}
	return nil
}

func (answers) CreateTopic(_ context.Context, id engine.TopicID, c engine.TopicConfig) error {
	return same([]any{id, c}, []any{1, goldenTopic})
}

func (answers) ConfigureTopic(_ context.Context, id engine.TopicID, c engine.TopicConfig) error {
	return same([]any{id, c}, []any{1, goldenTopic})
}

func (answers) DeleteTopic(_ context.Context, id engine.TopicID) error { return same(id, 1) }

func (answers) DescribeTopic(_ context.Context, id engine.TopicID) (engine.TopicStats, error) {
	return engine.TopicStats{
		Config:     goldenTopic,
		Partitions: []engine.PartitionStats{{First: 1, Next: 2, Bytes: 3, LastPublish: 4}},
		Subscriptions: []engine.SubscriptionStats{{
			Name: "s", Config: goldenSubscription, Cursors: []engine.CursorStats{{Floor: 1, Acked: 2}}, Backlog: 3,
			BacklogBytes: 4, Leased: 5, Delayed: 6, Waiting: 7, Redelivered: 8,
			Filtered: engine.FilterCounts{Selected: 9, PassedOver: 10, Failed: 11},
		}},
	}, same(id, 1)
}

func (answers) ListTopics(_ context.Context, after engine.TopicID, limit int) ([]engine.TopicID, error) {
	return []engine.TopicID{2, 3}, same([]any{after, limit}, []any{1, 5})
}

func (answers) Append(_ context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	return []engine.Appended{{ID: goldenID, Duplicate: true}},
		same([]any{id, partition, msgs}, []any{1, 2, []engine.Message{goldenMessage}})
}

func (answers) Read(_ context.Context, id engine.TopicID, req engine.ReadRequest) ([]engine.Record, error) {
	return []engine.Record{goldenRecord}, same([]any{id, req}, []any{1, goldenRead})
}

func (answers) CreateSubscription(_ context.Context, id engine.TopicID, name string, c engine.SubscriptionConfig,
	at engine.Position,
) error {
	return same([]any{id, name, c, at}, []any{1, "s", goldenSubscription, goldenPosition})
}

func (answers) ConfigureSubscription(_ context.Context, id engine.TopicID, name string,
	c engine.SubscriptionConfig,
) error {
	return same([]any{id, name, c}, []any{1, "s", goldenSubscription})
}

func (answers) DeleteSubscription(_ context.Context, id engine.TopicID, name string) error {
	return same([]any{id, name}, []any{1, "s"})
}

func (answers) ResetSubscription(_ context.Context, id engine.TopicID, name string, at engine.Position) error {
	return same([]any{id, name, at}, []any{1, "s", goldenPosition})
}

func (answers) Receive(_ context.Context, id engine.TopicID, name string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	return []engine.Delivery{{Record: goldenRecord, Redeliveries: 1, LeasedUntil: goldenTime}},
		same([]any{id, name, req}, []any{1, "s", goldenReceive})
}

func (answers) Settle(_ context.Context, id engine.TopicID, name string, settlements []engine.Settlement) error {
	return same([]any{id, name, settlements}, []any{1, "s", goldenSettlements})
}

func (answers) ReadBatches(_ context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	extent := engine.Extent{First: 1, Next: 9}
	if visit == nil {
		return extent, same([]any{id, partition, from}, []any{1, 2, 3})
	}
	_, err := visit(&engine.StoredValue{First: 3, PublishTime: 4, Run: engine.MessageBatch{
		Format: engine.KafkaRecordBatch, Count: 5, MaxTime: 6, Body: []byte("body"),
	}})
	if err == nil {
		_, err = visit(&engine.StoredValue{First: 8, PublishTime: 4, Record: goldenRecord})
	}
	return extent, errors.Join(err, same([]any{id, partition, from}, []any{1, 2, 3}))
}

func (answers) WaitEntries(_ context.Context, positions []engine.PartitionPosition) error {
	return same(positions, goldenPositions)
}

func (answers) FindByTime(_ context.Context, id engine.TopicID, partition int32,
	millis int64,
) (engine.FindResult, error) {
	return engine.FindResult{OK: true, Entry: 1, Time: 2}, same([]any{id, partition, millis}, []any{1, 2, 3})
}

func (answers) FindNewest(_ context.Context, id engine.TopicID, partition int32) (engine.FindResult, error) {
	return engine.FindResult{OK: true, Entry: 3, Time: 4}, same([]any{id, partition}, []any{1, 2})
}

func (answers) Attributes(_ context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Attribute) error,
) error {
	return errors.Join(same([]any{id, partition, prefix}, []any{1, 2, []byte("k")}),
		visit(engine.Attribute{Key: []byte("key"), Value: []byte("value")}))
}

func (answers) Trim(_ context.Context, id engine.TopicID, partition int32, before uint64) (uint64, error) {
	return 4, same([]any{id, partition, before}, []any{1, 2, 3})
}

func (answers) Totals() engine.Totals { return engine.Totals{Stored: 1, Subscriptions: 2} }
