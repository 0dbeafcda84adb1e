package pebble

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/cleanclose"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e, err := Open("store", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := cdb.Open("store",
		&cdb.Options{FS: fs, FormatMajorVersion: cdb.FormatNewest, Logger: storeLogger{e.store}})
	if err != nil {
		t.Fatal(err)
	}
	var p wire.Writer
	p.Uvarint(formatVersion + 1)
	key := []byte{keyFormat}
	if err := errors.Join(db.Set(key, addChecksum(key, p), cdb.Sync), db.Close(),
		fs.Remove("store/"+cleanclose.Name)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open("store", Options{FS: fs}); !errors.Is(err, engine.ErrNewerFormat) {
			t.Fatalf("open: got error %v, want %v", err, engine.ErrNewerFormat)
		}
	}
}

// TestAFailedOpenLeavesNoGoroutine opens a store that is open already. Pebble's monitor of slow
// writes must not outlive the failure. The test is not parallel, because it counts monitors.
func TestAFailedOpenLeavesNoGoroutine(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(dir, Options{})
	must(t, err)
	monitors := func() int {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return strings.Count(string(stacks), "created by github.com/cockroachdb/pebble/v2/vfs.(*diskHealthCheckingFS)")
	}
	before := monitors()
	for range 3 {
		if _, err := Open(dir, Options{}); err == nil {
			t.Fatal("second open of the same store: got no error, want one")
		}
	}
	for until := time.Now().Add(5 * time.Second); monitors() > before && time.Now().Before(until); {
		runtime.Gosched()
	}
	if after := monitors(); before == 0 || after > before {
		t.Errorf("got %d monitors after the failures and %d before them, want as many", after, before)
	}
	must(t, e.Close())
}

func TestStoreIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Open(dir, Options{}); err == nil {
		other.Close()
		t.Error("second open of the same store: got no error, want one")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	cache := NewCache(1<<20, 1000, nil)
	defer cache.Close()
	open := func(name string) *Engine {
		t.Helper()
		e, err := Open(filepath.Join(dir, name), Options{Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		return e
	}
	put := func(e *Engine, payload string) {
		t.Helper()
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte(payload)}}); err != nil {
			t.Fatal(err)
		}
	}
	e := open("store")
	if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	put(e, "in the copy")
	if err := e.Checkpoint(ctx, filepath.Join(dir, "copy")); err != nil {
		t.Fatal(err)
	}
	put(e, "not in the copy")
	if err := e.Checkpoint(ctx, filepath.Join(dir, "copy")); err == nil {
		t.Error("checkpoint to an existing directory: got no error, want one")
	}
	copied := open("copy")
	put(copied, "only in the copy")
	for e, want := range map[*Engine]string{e: "not in the copy", copied: "only in the copy"} {
		records, err := e.Read(ctx, 1, engine.ReadRequest{Max: 10})
		if err != nil || len(records) != 2 || string(records[1].Payload) != want {
			t.Errorf("read: got %d messages, %v; want 2, the second %q", len(records), err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	m := engine.Message{
		Payload: []byte("payload"), Key: "k", Properties: []engine.Property{{Key: "a", Value: "b"}},
		EventTime: 1, SchemaVersion: 2, Producer: "p", Sequence: 3, HasSequence: true, DeliverAt: 4,
		Dedup: engine.DedupKey{Producer: "key"},
	}
	key := messageKey(1, 1, 0, 0)
	d := prepare(&m, nil)
	value := make([]byte, d.size())
	d.put(key, value, 0, 5, 6, 5)
	f.Add(value)
	f.Add(value[:recordHeaderLen])
	batch := packBatch(&engine.MessageBatch{
		Format: engine.KafkaRecordBatch, Count: 3, MaxTime: 7,
		Body: []byte("body"),
	})
	value = make([]byte, batch.size())
	batch.put(key, value, 5, 6, 7)
	f.Add(value)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		if r, err := decode(key, value, engine.MessageID{}); err != nil && !errors.Is(err, engine.ErrCorrupt) {
			t.Fatal(r, err)
		}
		if len(value) >= recordHeaderLen { // with a valid checksum the fields are decoded as well
			flags := engine.Message{Payload: value[recordHeaderLen:], SchemaVersion: engine.NoSchema}
			d := prepare(&flags, nil)
			d.flags = value[4]
			whole := make([]byte, d.size())
			d.put(key, whole, 0, 0, 0, 0)
			if _, err := decode(key, whole, engine.MessageID{}); err != nil && !errors.Is(err, engine.ErrCorrupt) {
				t.Fatal(err)
			}
		}
		for r := (&internalReader{body: value}); ; {
			if _, _, err := r.Next(0, nil); err != nil {
				break
			}
		}
		_, _ = unpackTopic(value)
		_, _ = unpackHead(value)
		_, _, _ = unpackSub(value)
	})
}

// TestMessagesHaveTablesOfTheirOwn writes many eras and checks that tables with messages
// contain no other keys.
func TestMessagesHaveTablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	e, err := Open("store", Options{FS: vfs.NewMem(), MemTableBytes: 512 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	makeTopics(t, e, 1, 20, true)
	ctx := context.Background()
	noise := payload(1 << 10)
	for i := range 400 {
		msgs := make([]engine.Message, 100)
		for n := range msgs {
			msgs[n].Payload = noise
		}
		if _, err := e.Append(ctx, engine.TopicID(i%20+1), 0, msgs); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	levels, err := e.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for level := range levels {
		for _, table := range levels[level] {
			tables++
			if first, last := table.Smallest.UserKey[0], table.Largest.UserKey[0]; first != last &&
				(first == keyMessage || last == keyMessage) {
				t.Errorf("table in level %d: got keys from %c to %c, want only messages or none", level, first, last)
			}
		}
	}
	if tables < 10 {
		t.Errorf("got %d tables, want at least 10", tables)
	}
}

// TestSiblingsDivideWriteBuffers checks the size of a store's write buffer, which depends on how many stores are
// written at the same time. The size of an era does not.
func TestSiblingsDivideWriteBuffers(t *testing.T) {
	for siblings, want := range map[int]int{
		0: defaultMemTable, 1: defaultMemTable, 2: defaultMemTable / 2, 4: defaultMemTable / 4, 1000: minMemTable,
	} {
		o := Options{Siblings: siblings}.withDefaults()
		if o.MemTableBytes != want || o.EraBytes != defaultMemTable/4 {
			t.Errorf("%d siblings: got a write buffer of %d and eras of %d bytes, want %d and %d", siblings,
				o.MemTableBytes, o.EraBytes, want, defaultMemTable/4)
		}
	}
	o := Options{Siblings: 8, MemTableBytes: 1 << 20}.withDefaults()
	if o.MemTableBytes != 1<<20 || o.EraBytes != 1<<18 {
		t.Errorf("size that is set: got %d and eras of %d bytes, want %d and %d", o.MemTableBytes, o.EraBytes,
			1<<20, 1<<18)
	}
}
