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

	"freshet/internal/storage/engine"
	"freshet/test/tally"
)

// TestFaultDamagedFiles damages every file of a store in many ways: single bits, its end, the
// whole file. Damage may prevent the store from opening or a message from being read. It
// never changes the content that is read, and no acknowledged message is missing without an
// error.
func TestFaultDamagedFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ flushed, closed bool }{
		"in the log":                {},
		"in tables":                 {flushed: true},
		"closed store with a log":   {closed: true},
		"closed store with a table": {flushed: true, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := damageStore(t, tc.flushed, tc.closed)
			files, err := good.List("store")
			if err != nil {
				t.Fatal(err)
			}
			rounds := 8
			if tally.Long() {
				rounds = 400
			}
			rng := rand.New(rand.NewPCG(1, 1))
			fault := tally.Fault{Name: "damaged file, " + name}
			seen := map[string]int{}
			for _, file := range files {
				for _, harm := range corruptions(tc.closed, rounds) {
					fs := good.CrashClone(vfs.CrashCloneCfg{})
					if !rewrite(t, fs, "store/"+file, func(data []byte) []byte { return harm(data, rng) }) {
						continue
					}
					fault.Injected++
					seen[classifyDamage(t, fs, file, &fault)]++
				}
			}
			t.Logf("outcomes: %v", seen)
			if seen["refused to open"] == 0 || tc.flushed && seen["damage found"] == 0 {
				t.Errorf("got outcomes %v, want some of each kind", seen)
			}
			fault.Record(t)
		})
	}
}

// corruptions returns the damages of a file: flipped bits, a truncated file, an empty file. The
// effect of a crash on the end of a log cannot be distinguished from damage there, so the
// ends of files are not damaged in a store that was not closed.
func corruptions(closed bool, rounds int) []func([]byte, *rand.Rand) []byte {
	flip := func(data []byte, rng *rand.Rand) []byte {
		n := len(data)
		if !closed {
			n = max(1, n*3/4)
		}
		data[rng.IntN(n)] ^= 1 << rng.IntN(8)
		return data
	}
	var list []func([]byte, *rand.Rand) []byte
	for range rounds {
		list = append(list, flip)
	}
	if closed {
		for range rounds / 2 {
			list = append(list, func(data []byte, rng *rand.Rand) []byte { return data[:rng.IntN(len(data))] })
		}
		list = append(list, func([]byte, *rand.Rand) []byte { return nil })
	}
	return list
}

const damageMessages = 200

func damagePayload(i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "message %d;", i), 1+i%50)
}

// damageStore creates a store with messages and a journal, whose writes are all acknowledged.
func damageStore(t *testing.T, flushed, closed bool) *vfs.MemFS {
	t.Helper()
	ctx := context.Background()
	fs := vfs.NewCrashableMem()
	e, err := Open("store", Options{FS: fs, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	j, err := e.Journal(ctx, "j")
	if err = errors.Join(err,
		e.CreateTopic(ctx, 1, keepAll),
		e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}),
	); err != nil {
		t.Fatal(err)
	}
	for i := range damageMessages {
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: damagePayload(i)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(ctx, uint64(i), damagePayload(i)); err != nil {
			t.Fatal(err)
		}
	}
	if flushed {
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if closed {
		return fs
	}
	return crashed
}

// rewrite changes a file, and reports whether the file had content to change.
func rewrite(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) bool {
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
	data = change(data)
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

// classifyDamage opens a damaged store, reads all of it, counts missing and wrong messages, and
// returns the outcome.
func classifyDamage(t *testing.T, fs vfs.FS, name string, fault *tally.Fault) string {
	t.Helper()
	ctx := context.Background()
	fault.Checked += 2 * damageMessages
	e, err := Open("store", Options{FS: fs})
	if err != nil {
		return "refused to open"
	}
	defer e.Close()
	var found, lost, wrong int
	note := func(i int, payload []byte, err error) {
		switch {
		case errors.Is(err, engine.ErrCorrupt):
			found++
		case err != nil || payload == nil:
			lost++
			t.Logf("%s: entry %d is missing without a damage error: %v", name, i, err)
		case !bytes.Equal(payload, damagePayload(i)):
			wrong++
			t.Logf("%s: entry %d has damaged content", name, i)
		}
	}
	for from := 0; from < damageMessages; {
		records, err := e.Read(ctx, 1, engine.ReadRequest{From: uint64(from), Max: damageMessages})
		if len(records) == 0 || err != nil {
			note(from, nil, err)
			from++
		}
		for _, r := range records {
			for ; uint64(from) < r.ID.Entry; from++ {
				note(from, nil, nil)
			}
			note(from, r.Payload, nil)
			from++
		}
	}
	j, err := e.Journal(ctx, "j")
	next := 0
	if err == nil {
		_, err = j.Replay(ctx, 0, func(position uint64, record []byte) error {
			note(int(position)-1, record, nil)
			next = int(position)
			return nil
		})
	}
	for ; next < damageMessages; next++ {
		note(next, nil, err)
	}
	if found > 0 && found < damageMessages {
		drain(t, e, name)
	}
	fault.Lost += lost
	fault.Wrong += wrong
	switch {
	case lost+wrong > 0:
		return "not detected"
	case found > 0:
		return "damage found"
	}
	return "no harm"
}

// drain consumes everything and skips damaged messages by acknowledging them.
func drain(t *testing.T, e *Engine, name string) {
	t.Helper()
	ctx := context.Background()
	done := make(map[uint64]bool)
	for len(done) < damageMessages {
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 50, Partition: engine.AllPartitions})
		var bad *engine.DamagedMessage
		settle := make([]engine.Settlement, 0, len(got)+1)
		for i := range got {
			settle = append(settle, engine.Settlement{ID: got[i].ID})
		}
		switch {
		case errors.As(err, &bad):
			settle = append(settle, engine.Settlement{ID: bad.ID})
		case errors.Is(err, engine.ErrCorrupt):
			return // more than single messages is damaged, and the engine has reported it
		case err != nil:
			t.Fatalf("%s: receive: got error %v, want none or damage", name, err)
		case len(got) == 0: // the damaged messages of earlier rounds are leased
			for entry := range uint64(damageMessages) {
				if !done[entry] {
					settle = append(settle, engine.Settlement{ID: engine.MessageID{Topic: 1, Entry: entry}})
				}
			}
		}
		if err := e.Settle(ctx, 1, "s", settle); err != nil {
			t.Fatalf("%s: acknowledge %d messages: got error %v, want none", name, len(settle), err)
		}
		for _, s := range settle {
			done[s.ID.Entry] = true
		}
	}
	if stats, err := e.DescribeTopic(ctx, 1); err != nil || stats.Subscriptions[0].Backlog != 0 {
		t.Errorf("%s: after everything was acknowledged: got %+v, %v; want no backlog", name, stats.Subscriptions, err)
	}
}

// TestDamagedRecord damages a value without invalidating Pebble's checksums: the checksum of
// the record detects it, the other messages are served, and the damaged one can be
// acknowledged.
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
	var reported *engine.DamagedMessage
	if _, err := e.Read(ctx, 1, engine.ReadRequest{From: 1, Max: 1}); !errors.Is(err, engine.ErrCorrupt) ||
		!errors.As(err, &reported) || reported.ID.Entry != 1 {
		t.Errorf("read: got %v, want damage of entry 1", err)
	}
	if got, err := e.Read(ctx, 1, engine.ReadRequest{Max: 10}); err != nil || len(got) != 1 {
		t.Errorf("read up to the damage: got %d, %v; want 1", len(got), err)
	}
	all := engine.ReceiveRequest{Max: 10, Partition: engine.AllPartitions}
	got, err := e.Receive(ctx, 1, "s", all)
	if err != nil || len(got) != 2 || got[1].ID.Entry != 2 {
		t.Fatalf("receive: got %d messages, %v; want entries 0 and 2", len(got), err)
	}
	if err := e.ResetSubscription(ctx, 1, "s",
		engine.Position{Kind: engine.AtID, ID: engine.MessageID{Topic: 1, Entry: 1}}); err != nil {
		t.Fatal(err)
	}
	all.Max = 1
	if _, err := e.Receive(ctx, 1, "s", all); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("receive the damaged message: got error %v, want %v", err, engine.ErrCorrupt)
	}
	if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: engine.MessageID{Topic: 1, Entry: 1}}}); err != nil {
		t.Errorf("acknowledge the damaged message: got error %v, want none", err)
	}
	stats, err := e.DescribeTopic(ctx, 1)
	if err != nil || stats.Subscriptions[0].Backlog != 1 {
		t.Errorf("describe: got %+v, %v; want a backlog of 1", stats.Subscriptions, err)
	}
	if found, skipped := e.DamagedMessages(); found != 1 || skipped != 1 {
		t.Errorf("damaged messages: got %d found and %d skipped, want 1 and 1", found, skipped)
	}
	if err := e.Health(); err != nil {
		t.Errorf("health with one damaged message: got %v, want nil", err)
	}
}

// TestDamagedEnd damages the newest records of a topic: the topic can still be loaded, new
// messages get the next entries, and its statistics are right.
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
			t.Errorf("%d damaged: got %+v, want %+v", bad, a, b)
		}
		out, err := e.Append(ctx, id, 0, []engine.Message{{Payload: []byte("next")}})
		if err != nil || out[0].ID.Entry != 12 {
			t.Errorf("%d damaged: append: got %v, %v; want entry 12", bad, out, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLogOfEveryLengthIsWhole writes records of sizes that leave any number of free bytes at
// the end of a log's block, and opens the store after a crash.
func TestLogOfEveryLengthIsWhole(t *testing.T) {
	t.Parallel()
	for size := 32<<10 - 1500; size < 32<<10; size += 10 { // the step is less than the header of a chunk
		fs := vfs.NewCrashableMem()
		e, err := Open("store", Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
			t.Fatal(err)
		}
		for range 6 { // so that there is durable data after the end of the block
			if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: make([]byte, size)}}); err != nil {
				t.Fatal(err)
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := Open("store", Options{FS: crashed})
		if err != nil {
			t.Fatalf("payloads of %d bytes: got %v, want the store to open", size, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
