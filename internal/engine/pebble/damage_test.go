package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/engine"
)

// TestBitFlips damages every file of a store, one bit at a time. Damage may
// keep the store from opening or a message from being read; it never changes
// what is read.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	for _, flushed := range []bool{false, true} {
		t.Run(fmt.Sprintf("flushed=%v", flushed), func(t *testing.T) {
			t.Parallel()
			good := damageStore(t, flushed)
			files, err := good.List("store")
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			kinds := map[string]int{}
			for _, name := range files {
				for range 25 {
					fs := good.CrashClone(vfs.CrashCloneCfg{})
					if !flip(t, fs, "store/"+name, rng) {
						break
					}
					kinds[outcome(t, fs, name)]++
				}
			}
			t.Logf("outcomes: %v", kinds)
			if flushed && kinds["damage found"] == 0 {
				t.Error("no damage was ever found")
			}
		})
	}
}

const damageMessages = 200

func damagePayload(i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "message %d;", i), 1+i%50)
}

func damageStore(t *testing.T, flushed bool) *vfs.MemFS {
	t.Helper()
	ctx := context.Background()
	fs := vfs.NewCrashableMem()
	e, err := Open("store", Options{FS: fs, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		e.CreateTopic(ctx, 1, keepAll),
		e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}),
	); err != nil {
		t.Fatal(err)
	}
	for i := range damageMessages {
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: damagePayload(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if flushed {
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// flip changes one bit of a file, and says whether there was one to change.
func flip(t *testing.T, fs vfs.FS, name string, rng *rand.Rand) bool {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 || strings.HasSuffix(name, "LOCK") {
		return false
	}
	data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
	f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return true
}

// outcome opens a damaged store and reads everything of it.
func outcome(t *testing.T, fs vfs.FS, name string) string {
	t.Helper()
	ctx := context.Background()
	e, err := Open("store", Options{FS: fs})
	if err != nil {
		return "refused to open"
	}
	defer e.Close()
	stats, err := e.DescribeTopic(ctx, 1)
	if err != nil {
		return "damage found"
	}
	found := false
	for i := range stats.Partitions[0].Next {
		records, err := e.Read(ctx, 1, engine.ReadRequest{From: i, Max: 1})
		switch {
		case errors.Is(err, engine.ErrCorrupt):
			found = true
		case err != nil:
			t.Fatalf("%s: read %d: %v", name, i, err)
		case len(records) == 0 || records[0].ID.Entry != i:
			t.Fatalf("%s: entry %d is missing without a word", name, i)
		case !bytes.Equal(records[0].Payload, damagePayload(int(i))):
			t.Fatalf("%s: entry %d is served damaged", name, i)
		}
	}
	switch {
	case found:
		return "damage found"
	case stats.Partitions[0].Next < damageMessages:
		return "log cut short"
	}
	return "no harm"
}

// TestDamagedRecord damages a value behind Pebble's own checksums: ours finds
// it, the other messages are served, and the damaged one can be acknowledged.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := openMemory(t)
	if err := errors.Join(
		e.CreateTopic(ctx, 1, keepAll),
		e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}),
	); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: damagePayload(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	key := messageKey(1, 1, 0, 1)
	value, closer, err := e.db.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte(nil), value...)
	closer.Close()
	bad[len(bad)-1] ^= 1
	if err := e.db.Set(key, bad, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Read(ctx, 1, engine.ReadRequest{From: 1, Max: 1}); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	all := engine.ReceiveRequest{Max: 10, Partition: engine.AllPartitions}
	got, err := e.Receive(ctx, 1, "s", all)
	if err != nil || len(got) != 2 || got[1].ID.Entry != 2 {
		t.Fatalf("received %d, %v", len(got), err)
	}
	if err := e.ResetSubscription(ctx, 1, "s", engine.Position{Kind: engine.AtID, ID: engine.MessageID{Topic: 1, Entry: 1}}); err != nil {
		t.Fatal(err)
	}
	all.Max = 1
	if _, err := e.Receive(ctx, 1, "s", all); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("received the damaged one: %v", err)
	}
	if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: engine.MessageID{Topic: 1, Entry: 1}}}); err != nil {
		t.Errorf("acknowledge the damaged one: %v", err)
	}
	stats, err := e.DescribeTopic(ctx, 1)
	if err != nil || stats.Subscriptions[0].Backlog != 1 {
		t.Errorf("%+v, %v", stats.Subscriptions, err)
	}
}

// TestDamagedEnd damages the newest records of a topic: it can still be loaded,
// goes on behind them, and its statistics are right.
func TestDamagedEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	open := func() *Engine {
		t.Helper()
		e, err := Open("store", Options{FS: fs, EraBytes: 1 << 10})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, bad := range []int{1, 5, 12} {
		id := engine.TopicID(bad)
		e := open()
		if err := e.CreateTopic(ctx, id, keepAll); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if _, err := e.Append(ctx, id, 0, []engine.Message{{Payload: damagePayload(i + 20)}}); err != nil {
				t.Fatal(err)
			}
		}
		before, err := e.DescribeTopic(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		p := (*e.topics.m[id].parts.Load())[0]
		for entry := uint64(12 - bad); entry < 12; entry++ {
			key := messageKey(p.eraOf(entry), id, 0, entry)
			size, err := p.size(entry)
			if err = errors.Join(err, e.db.Set(key, make([]byte, size), nil)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open()
		after, err := e.DescribeTopic(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if b, a := before.Partitions[0], after.Partitions[0]; a.Next != b.Next || a.Bytes != b.Bytes {
			t.Errorf("%d damaged: was %+v, is %+v", bad, b, a)
		}
		out, err := e.Append(ctx, id, 0, []engine.Message{{Payload: []byte("next")}})
		if err != nil || out[0].ID.Entry != 12 {
			t.Errorf("%d damaged: appended %v, %v", bad, out, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
