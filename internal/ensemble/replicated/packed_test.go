package replicated

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// records reads the whole log.
func (st *stream) records(t testing.TB) (out []record) {
	t.Helper()
	state, err := st.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for seq := max(1, state.FirstSeq); seq <= state.LastSeq; seq++ {
		var r record
		eventually(t, "a response of the log's leader", func() bool {
			r, err = st.read(t.Context(), nil, seq)
			return !isNoLeader(err)
		})
		if err != nil {
			t.Fatalf("message %d: got error %v, want none", seq, err)
		}
		out = append(out, r)
	}
	return out
}

// appendBytes appends a message in a commit batch of its own, and returns the log's messages
// for it.
func (m *member) appendBytes(t testing.TB, payload []byte) []record {
	t.Helper()
	e := m.awaitOwner(t)
	m.mu.Lock()
	st := m.stream
	m.mu.Unlock()
	before := len(st.records(t))
	if _, err := e.Append(context.Background(), 1, 0, []engine.Message{{Payload: payload}}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(st.records(t)[before:], func(r record) bool { return len(r.data) < 1000 })
}

// wantPayloads checks that topic 1 has these messages and no others.
func wantPayloads(t testing.TB, e engine.Engine, want ...[]byte) {
	t.Helper()
	records, err := e.Read(context.Background(), 1, engine.ReadRequest{Max: 10000})
	if err != nil {
		t.Fatalf("read: got error %v, want none", err)
	}
	got := make([][]byte, 0, len(records))
	for _, r := range records {
		got = append(got, r.Payload)
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("got %d messages, want the %d that were appended", len(got), len(want))
	}
}

// TestPackedLog appends compressible data, incompressible data, and compressed data of
// several messages to a log of three servers. A standby and a copy that reads the whole log
// later have the same content.
func TestPackedLog(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 3, natstest.Unsafe).team()
	whole := func(o *Options) { o.FlushInterval = time.Hour } // the log is not purged
	a := tm.start(t, "a", 0, vfs.NewCrashableMem(), whole)
	if err := a.awaitOwner(t).CreateTopic(context.Background(), 1, retainAll); err != nil {
		t.Fatal(err)
	}
	// Messages of maxPartBytes would be replicated too slowly on a busy machine: the servers would
	// elect new leaders meanwhile.
	const part = 256 << 10
	a.mu.Lock()
	a.writer.maxPart = part
	a.mu.Unlock()
	b := tm.start(t, "b", 1, vfs.NewCrashableMem(), whole)
	payloads := [][]byte{
		events(100 << 10), noise(100 << 10), append(noise(part+1000), make([]byte, part)...), events(100),
	}
	for i, want := range []struct {
		packing string
		parts   int
		most    int // bytes in the log
	}{{packingS2, 1, 40 << 10}, {"", 1, 101 << 10}, {packingS2, 2, part + part/8}, {"", 0, 0}} {
		a.mu.Lock()
		w := a.writer
		a.mu.Unlock()
		before := w.appended.Load()
		got, size := a.appendBytes(t, payloads[i]), 0
		for _, r := range got {
			size += len(r.data)
			if r.packing != want.packing {
				t.Errorf("message %d: got packing %q, want %q", i, r.packing, want.packing)
			}
		}
		if len(got) != want.parts || size > want.most {
			t.Errorf("message %d: got %d parts of %d bytes, want %d of at most %d", i, len(got), size,
				want.parts, want.most)
		}
		if counted := int(w.appended.Load() - before); counted < size || counted > size+1000 {
			t.Errorf("message %d: got %d bytes counted, want the %d that are in the log", i, counted, size)
		}
	}
	end := a.Status().Applied
	b.awaitApplied(t, end)
	c := tm.start(t, "c", 2, vfs.NewCrashableMem(), whole)
	c.awaitApplied(t, end)
	if got, most := b.bytes.Load(), int64(3*part); got > most || got < part {
		t.Errorf("standby: got %d bytes of the log counted, want %d to %d", got, part, most)
	}
	wantPayloads(t, a.awaitOwner(t), payloads...)
	c.postponeCampaign(time.Hour)
	a.stop(t)
	wantPayloads(t, b.awaitOwner(t), payloads...)
	c.postponeCampaign(0)
	b.stop(t)
	wantPayloads(t, c.awaitOwner(t), payloads...)
	c.stop(t)
}

// TestLogWithoutPacking reads a log that was written before batches were compressed.
func TestLogWithoutPacking(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 1, natstest.Unsafe)
	a := g.team().start(t, "a", 0, vfs.NewCrashableMem())
	e := a.awaitOwner(t)
	if err := e.CreateTopic(context.Background(), 1, retainAll); err != nil {
		t.Fatal(err)
	}
	payload := events(100 << 10)
	if got := a.appendBytes(t, payload); len(got) != 1 || got[0].packing == "" {
		t.Fatalf("got %d messages in the log, want a packed one", len(got))
	}
	a.mu.Lock()
	packed := a.stream.records(t)
	a.mu.Unlock()

	old := g.team()
	o := Options{Cluster: old.cluster, JetStream: a.js, Replicas: 1, Etcd: a.client, Prefix: "/shards"}
	st, err := openStream(t.Context(), &o, o.keys().log)
	if err != nil {
		t.Fatal(err)
	}
	var sum uint32
	for _, r := range packed {
		if r.data, err = unpack(r.packing, r.data); err != nil {
			t.Fatal(err)
		}
		r.packing = ""
		if r.isEpoch() {
			r.log = st.id.String()
		}
		r.sum = r.sumAfter(sum)
		sum = r.sum
		if _, err := a.js.PublishMsg(t.Context(), r.message(st.subject, "")); err != nil {
			t.Fatal(err)
		}
	}
	b := old.start(t, "b", 0, vfs.NewCrashableMem())
	wantPayloads(t, b.awaitOwner(t), payload)
	if got := b.appendBytes(t, payload); len(got) != 1 || got[0].packing != packingS2 {
		t.Errorf("got %d messages in the log, want a packed one", len(got))
	}
	wantPayloads(t, b.awaitOwner(t), payload, payload)
	b.stop(t)
	a.stop(t)
}

// TestLogOfANewerVersion appends a message with an unknown packing to the log. The members
// neither apply it nor own the shard, report that they must be upgraded, and report no loss.
func TestLogOfANewerVersion(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	disk := vfs.NewCrashableMem()
	a := tm.start(t, "a", 0, disk)
	e := a.awaitOwner(t)
	if err := e.CreateTopic(context.Background(), 1, retainAll); err != nil {
		t.Fatal(err)
	}
	appendText(t, e, "one")
	a.mu.Lock()
	st, w := a.stream, a.writer
	a.mu.Unlock()
	w.mu.Lock()
	at, next := w.end, w.next
	w.mu.Unlock()
	newer := record{
		seq: next, epoch: at.epoch, index: at.index + 1, owner: "newer", part: 1, parts: 1, packing: "zstd",
		data: noise(5000),
	}
	newer.sum = newer.sumAfter(at.sum)
	a.stop(t)
	if _, err := tm.g.nats.Connect(0).RequestMsg(newer.message(st.subject, ""), callTimeout); err != nil {
		t.Fatal(err)
	}
	a = tm.start(t, "a", 0, disk)
	b := tm.start(t, "b", 0, vfs.NewCrashableMem())
	for _, m := range []*member{a, b} {
		eventually(t, "a member that rejects the packing",
			func() bool { return errors.Is(m.Status().Err, errUnknownPacking) })
		status := m.Status()
		if errors.Is(status.Err, engine.ErrLogLost) || !strings.Contains(status.Err.Error(), "upgrade") {
			t.Errorf("member %s: got error %v, want a request to upgrade and no loss", m.name, status.Err)
		}
		if status.Applied >= newer.seq {
			t.Errorf("member %s: got the log applied up to message %d, want less than %d", m.name,
				status.Applied, newer.seq)
		}
		if _, err := m.Engine(); err == nil {
			t.Errorf("member %s: got an engine, want none", m.name)
		}
	}
	eventually(t, "the problem published", func() bool {
		for _, c := range a.Status().Copies {
			if c.Member == "b" && strings.Contains(c.Problem, "upgrade") && !c.Lost {
				return true
			}
		}
		return false
	})
	a.stop(t)
	b.stop(t)
}

// TestApplyRecordRefuses gives a follower messages with a valid checksum and invalid data: none of
// them is applied.
func TestApplyRecordRefuses(t *testing.T) {
	t.Parallel()
	good, _ := pack(events(minPackBytes))
	huge := append(binary.AppendUvarint(nil, 10<<30), good...)
	large := append(binary.AppendUvarint(nil, maxPackBytes+1), good...)
	for name, tc := range map[string]struct {
		records []record
		want    error
	}{
		"unknown packing":     {[]record{{part: 1, parts: 1, packing: "zstd", data: good}}, errUnknownPacking},
		"unknown, first part": {[]record{{part: 1, parts: 2, packing: "zstd", data: good}}, errUnknownPacking},
		"announces 10 GiB":    {[]record{{part: 1, parts: 1, packing: packingS2, data: huge}}, engine.ErrCorrupt},
		"announces too much":  {[]record{{part: 1, parts: 1, packing: packingS2, data: large}}, errTooLarge},
		"not packed":          {[]record{{part: 1, parts: 1, packing: packingS2, data: noise(100)}}, engine.ErrCorrupt},
		"second part is not packed": {[]record{
			{part: 1, parts: 2, packing: packingS2, data: good},
			{part: 2, parts: 2, data: good},
		}, engine.ErrLogLost},
		"one part too many": {[]record{
			{part: 1, parts: 2, packing: packingS2, data: good},
			{part: 2, parts: 2, packing: packingS2, data: good},
		}, engine.ErrCorrupt},
		"incomplete": {
			[]record{{part: 1, parts: 1, packing: packingS2, data: good[:len(good)/2]}},
			engine.ErrCorrupt,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := pebble.OpenStore("store", pebble.Options{FS: vfs.NewMem()})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			f := &follower{
				st: &stream{}, store: store, end: new(atomic.Uint64), applied: new(atomic.Uint64),
				bytes: new(atomic.Int64),
			}
			for i, r := range tc.records {
				r.seq, r.index = uint64(i+1), uint64(i+1)
				r.sum = r.sumAfter(f.last.sum)
				if err = f.applyRecord(r); err != nil {
					break
				}
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("got error %v, want %v", err, tc.want)
			}
			if stored, err := store.LogPosition(); stored != nil || err != nil || f.applied.Load() != 0 {
				t.Errorf("got position %x, %v, want a store without any", stored, err)
			}
		})
	}
}
