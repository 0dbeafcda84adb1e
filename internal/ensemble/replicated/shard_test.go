package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

var retainAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

// appendText appends a message and returns its entry.
func appendText(t testing.TB, e engine.Engine, text string) uint64 {
	t.Helper()
	out, err := e.Append(context.Background(), 1, 0, []engine.Message{{Payload: []byte(text)}})
	if err != nil {
		t.Fatalf("append %s: got error %v, want none", text, err)
	}
	return out[0].ID.Entry
}

// wantTexts checks that topic 1 has these messages and no others.
func wantTexts(t testing.TB, e engine.Engine, want ...string) {
	t.Helper()
	records, err := e.Read(context.Background(), 1, engine.ReadRequest{Max: 10000})
	if err != nil {
		t.Fatalf("read: got error %v, want none", err)
	}
	got := []string{}
	for _, r := range records {
		got = append(got, string(r.Payload))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got messages %v, want %v", got, want)
	}
}

// TestOwners moves the shard from member to member: by a handover, after a kill, and to an
// empty member.
func TestOwners(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	g := newTestEnsemble(t, 1)
	g.lease = killedSeconds
	tm := g.team()
	a := tm.start(t, "a", 0, vfs.NewCrashableMem())
	e := a.awaitOwner(t)
	if err := e.CreateTopic(ctx, 1, retainAll); err != nil {
		t.Fatal(err)
	}
	appendText(t, e, "one")
	b := tm.start(t, "b", 0, vfs.NewCrashableMem())
	b.awaitApplied(t, a.Status().Applied)
	b.awaitOwnerSeen(t, "a")
	if _, err := b.Engine(); !errors.Is(err, engine.ErrNotOwner) {
		t.Errorf("engine of a standby: got error %v, want %v", err, engine.ErrNotOwner)
	}
	if got := b.Owner(); got.Member != "a" || got.Epoch != 1 {
		t.Errorf("owner: got %+v, want a with epoch 1", got)
	}
	begin := time.Now()
	if err := a.HandOver(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{}}); !errors.Is(err, engine.ErrNotOwner) {
		t.Errorf("append at the old owner: got error %v, want %v", err, engine.ErrNotOwner)
	}
	e = b.awaitOwner(t)
	t.Logf("handed over in %s", time.Since(begin))
	if live, got := tm.Live(), b.candidates(); !slices.Contains(live, "a") || !slices.Equal(got, []string{"b"}) {
		t.Errorf("candidates after a has handed over, with %v live: got %v, want b alone immediately", live, got)
	}
	wantTexts(t, e, "one")
	appendText(t, e, "two")
	a.awaitApplied(t, b.Status().Applied)
	a.stop(t)
	b.team.join("b", true)
	c := tm.start(t, "c", 0, vfs.NewCrashableMem())
	c.awaitApplied(t, b.Status().Applied)
	begin = time.Now()
	left := b.kill(t)
	e = c.awaitOwner(t)
	t.Logf("taken over %s after a kill, with leases of %d s", time.Since(begin), g.lease)
	wantTexts(t, e, "one", "two")
	appendText(t, e, "three")
	b = tm.start(t, "b", 0, left)
	b.awaitApplied(t, c.Status().Applied)
	c.stop(t)
	e = b.awaitOwner(t)
	wantTexts(t, e, "one", "two", "three")
	b.stop(t)
}

// TestAShardTakenByALostCall: etcd has executed a request whose response was lost. The
// member does not know that it has the owner key, and the shard must not stay unowned.
func TestAShardTakenByALostCall(t *testing.T) {
	t.Parallel()
	a := newTestEnsemble(t, 1, natstest.Unsafe).team().start(t, "a", 0, vfs.NewCrashableMem())
	a.awaitOwner(t)
	a.postponeCampaign(time.Second)
	if err := a.deleteOwner(t.Context(), a.ownerRevision()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no owner", func() bool { _, err := a.Engine(); return err != nil })
	if _, err := a.client.Put(t.Context(), a.keys.owner, a.ownerValue(0),
		clientv3.WithLease(a.lease.Session().Lease())); err != nil {
		t.Fatal(err)
	}
	a.awaitOwner(t)
	a.stop(t)
}
