package replicated

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

// TestSlippedAppend puts a message of an older owner into the log at a matching sequence:
// the first of its appends in flight was refused in favour of the new owner, and the second
// one finds the end that it expects. The message does not count, and the new owner
// continues.
func TestSlippedAppend(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	a := tm.start(t, "a", 0, vfs.NewCrashableMem())
	e := a.awaitOwner(t)
	if err := e.CreateTopic(context.Background(), 1, retainAll); err != nil {
		t.Fatal(err)
	}
	appendText(t, e, "one")
	a.mu.Lock()
	st, epoch := a.stream, a.writer.epoch
	a.mu.Unlock()
	state, err := st.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, slipped := range []record{
		{epoch: epoch - 1, index: 7, owner: "older", part: 1, parts: 1, data: []byte("older owner")},
		{epoch: epoch, index: 1 << 20, owner: a.instance, part: 1, parts: 1, data: []byte("predecessors missing")},
		{
			epoch: epoch, index: 1 << 21, owner: "newer", part: 1, parts: 1, packing: "zstd",
			data: []byte("newer version"),
		},
		{epoch: epoch, owner: "older", part: 1, parts: 1, log: st.id.String()},
	} {
		slipped.seq = state.LastSeq + 1 + uint64(i)
		ack, err := a.js.PublishMsg(t.Context(), slipped.message(st.subject, ""))
		if err != nil || ack.Sequence != slipped.seq {
			t.Fatalf("publish: got %+v, %v; want it stored at %d", ack, err, slipped.seq)
		}
	}
	appendText(t, e, "two")
	if got := a.epoch(); got != epoch {
		t.Errorf("epoch: got %d, want %d, because a void message ends no ownership", got, epoch)
	}
	b := tm.start(t, "b", 0, vfs.NewCrashableMem())
	b.awaitApplied(t, a.Status().Applied)
	a.stop(t)
	e = b.awaitOwner(t)
	wantTexts(t, e, "one", "two")
	appendText(t, e, "three")
	b.stop(t)
}

// TestLargeBatch appends a batch that needs several messages of the log, and kills an owner
// in the middle of such a batch: no part of it is applied.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	g := newTestEnsemble(t, 1, natstest.Unsafe)
	g.lease = killedSeconds
	tm := g.team()
	a := tm.start(t, "a", 0, vfs.NewCrashableMem())
	e := a.awaitOwner(t)
	if err := e.CreateTopic(ctx, 1, retainAll); err != nil {
		t.Fatal(err)
	}
	large := noise(2*maxPartBytes + 1000) // not compressed
	large[0], large[len(large)-1] = 1, 2
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: large}}); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	st, w := a.stream, a.writer
	a.mu.Unlock()
	w.mu.Lock()
	half := record{
		epoch: w.epoch, index: w.end.index + 1, owner: w.owner, part: 1, parts: 2,
		data: []byte("half of a batch"),
	}
	half.sum, half.seq = half.sumAfter(w.end.sum), w.next
	w.mu.Unlock()
	if _, err := a.js.PublishMsg(ctx, half.message(st.subject, "")); err != nil {
		t.Fatal(err)
	}
	b := tm.start(t, "b", 0, vfs.NewCrashableMem())
	b.awaitApplied(t, a.Status().Applied)
	a.kill(t)
	e = b.awaitOwner(t)
	records, err := e.Read(ctx, 1, engine.ReadRequest{Max: 10})
	if err != nil || len(records) != 1 || len(records[0].Payload) != len(large) ||
		records[0].Payload[len(large)-1] != 2 {
		t.Fatalf("got %d messages, %v; want the large one", len(records), err)
	}
	appendText(t, e, "next")
	b.stop(t)
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{}}); !errors.Is(err, engine.ErrNotOwner) {
		t.Errorf("append after stop: got error %v, want %v", err, engine.ErrNotOwner)
	}
}
