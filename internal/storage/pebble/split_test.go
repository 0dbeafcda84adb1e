package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
)

// TestDecodedSizeIsCharged checks that the cache charges messages with at least the size of their
// struct.
func TestDecodedSizeIsCharged(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[engine.Record]().Size(); size > recordBytes {
		t.Errorf("a record has %d bytes, and the cache charges %d", size, recordBytes)
	}
	if size := reflect.TypeFor[engine.Property]().Size(); size > propertyBytes {
		t.Errorf("a property has %d bytes, and the cache charges %d", size, propertyBytes)
	}
}

// smallCacheEngine returns an engine with a small cache, and a topic with a batch of count messages.
func smallCacheEngine(t *testing.T, budget *unpacking.Budget, count int32, payload string) (*Engine, *partition) {
	t.Helper()
	ctx := t.Context()
	cache := NewCache(4<<20, 100, budget)
	e, err := Open("store", Options{FS: vfs.NewMem(), Splitter: enginetest.Lines{}, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		cache.Close()
		if got := budget.Stats(); got.Cached != 0 || got.Working != 0 {
			t.Errorf("after closing the engine: got %+v, want no memory in use", got)
		}
	})
	if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	batch := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: count, MaxTime: 1}
	for i := range count {
		batch.Body = fmt.Appendf(batch.Body, "1 %d-%s\n", i, payload)
	}
	pending, err := e.AppendBatch(ctx, 1, 0, batch, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pending.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	topic, err := e.topics.acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(topic.release)
	p, err := topic.partition(0)
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

// TestWindowsOfABatch reads a batch that is larger than the cache forwards, backwards and in leaps.
func TestWindowsOfABatch(t *testing.T) {
	t.Parallel()
	const count = 2000
	budget := unpacking.New(1 << 20)
	_, p := smallCacheEngine(t, budget, count, strings.Repeat("x", 300))
	check := func(entry uint64) {
		t.Helper()
		got, _, err := p.read(t.Context(), entry)
		if want := fmt.Sprintf("%d-", entry); err != nil || !strings.HasPrefix(string(got.Payload), want) {
			t.Fatalf("entry %d: got %.10q, %v, want %s…", entry, got.Payload, err, want)
		}
		if s := budget.Stats(); s.Cached > 2*s.CacheLimit { // the newest window always stays
			t.Fatalf("entry %d: got %d bytes in the cache, want about %d", entry, s.Cached, s.CacheLimit)
		}
	}
	for entry := range uint64(count) {
		check(entry)
	}
	for entry := uint64(count); entry > 0; entry -= 100 {
		check(entry - 1)
	}
	for i := range uint64(200) {
		check(i * 7919 % count)
	}
}

// TestReadsWithoutMemory checks that a read waits for memory no longer than its context, and that
// messages in the internal format need no memory of the budget.
func TestReadsWithoutMemory(t *testing.T) {
	t.Parallel()
	ctx := fairshare.WithCaller(t.Context(), fairshare.Caller{Organization: "a", Principal: "b"})
	budget := unpacking.New(1 << 20)
	e, p := smallCacheEngine(t, budget, 10, "x")
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("y")}, {Payload: []byte("z")}}); err != nil {
		t.Fatal(err)
	}
	err := budget.Do(ctx, 1<<20, func(*unpacking.Reservation) error {
		got, _, err := p.read(ctx, 11)
		if err != nil || string(got.Payload) != "z" {
			t.Errorf("message in the internal format: got %q, %v, want z", got.Payload, err)
		}
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, _, err := p.read(canceled, 3); !errors.Is(err, canceled.Err()) {
			t.Errorf("batch without memory: got %v, want %v", err, canceled.Err())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := p.read(ctx, 3); err != nil || string(got.Payload) != "3-x" {
		t.Errorf("with memory: got %q, %v, want 3-x", got.Payload, err)
	}
}

// damagedReader fails after its first message.
type damagedReader struct{ n int32 }

func (r *damagedReader) Next(from int32, _ func(total int64) error) (int32, *engine.Message, error) {
	if r.n++; r.n > 1 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return from, &engine.Message{Payload: []byte("first")}, nil
}
func (*damagedReader) Memory() int64 { return 0 }
func (*damagedReader) Close()        {}

// TestUndecodableBatch checks that a batch that cannot be decoded is reported as damaged, and leaves
// nothing in the cache.
func TestUndecodableBatch(t *testing.T) {
	t.Parallel()
	budget := unpacking.New(1 << 20)
	e, p := smallCacheEngine(t, budget, 3, "x")
	w := &splitWindow{
		key: p.splitKey(2), head: recordHead{count: 3, format: engine.KafkaRecordBatch}, reader: &batchReader{
			BatchReader: &damagedReader{},
		},
	}
	e.splits.add(fairshare.Caller{}, w)
	if _, err := p.split(t.Context(), 2, w.head, nil, 0); !errors.Is(err, engine.ErrCorrupt) ||
		!errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want %v", err, engine.ErrCorrupt)
	}
	if got := budget.Stats().Cached; got != 0 {
		t.Errorf("%d bytes are in the cache, want none", got)
	}
}
