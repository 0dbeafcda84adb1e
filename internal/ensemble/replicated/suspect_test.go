package replicated

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/highwayhash"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/pebble"
)

// suspects records the servers that members suspect.
type suspects struct {
	mu      sync.Mutex
	servers []string // protected by mu
}

func (s *suspects) add(server, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.servers, server) {
		s.servers = append(s.servers, server)
	}
}

func (s *suspects) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.servers)
}

// changeRecord changes a record of the first block of a stream. With forge, the record has a checksum that nats-server
// accepts.
func changeRecord(t *testing.T, path, stream string, number int, forge bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for range number {
		at += int(binary.LittleEndian.Uint32(data[at:]) &^ (1 << 31))
	}
	word := binary.LittleEndian.Uint32(data[at:])
	r := data[at : at+int(word&^(1<<31))]
	r[len(r)-9] ^= 1 // the last byte of the content
	if forge {
		subject := int(binary.LittleEndian.Uint16(r[20:]))
		prefix := subject
		if word&(1<<31) != 0 {
			prefix += 4
		}
		body := r[22 : len(r)-8]
		key := sha256.Sum256(fmt.Appendf(nil, "%s-1", stream))
		hash, err := highwayhash.NewDigest64(key[:])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = hash.Write(r[4:20])
		_, _ = hash.Write(body[:subject])
		_, _ = hash.Write(body[prefix:])
		copy(r[len(r)-8:], hash.Sum(nil))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBadReplica damages a record on one server, which leads the log. A reader gets the record from another
// server, and the server is suspected.
func TestBadReplica(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]bool{"record missing": false, "record changed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const bad = 2
			tm := newTestEnsemble(t, 3, natstest.Unsafe, natstest.Unverified).team()
			a := tm.start(t, "a", 0, vfs.NewCrashableMem())
			e := a.awaitOwner(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := e.CreateTopic(ctx, 1, retainAll); err != nil {
				t.Fatal(err)
			}
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprintf("text %d", i))
				appendText(t, e, want[i])
			}
			tm.damageReplica(ctx, t, a, bad, forge)
			var found suspects
			f := newFollower(ctx, t, a, found.add)
			if err := f.catchUp(ctx); err != nil || f.at.seq != a.Status().Applied {
				t.Errorf("reading the log from its leader: got message %d and error %v, want %d", f.at.seq, err,
					a.Status().Applied)
			}
			if got := found.all(); len(got) != 1 || got[0] != "n2" {
				t.Errorf("suspected servers: got %q, want n2", got)
			}
			b := tm.start(t, "b", 1, vfs.NewCrashableMem())
			b.awaitApplied(t, a.Status().Applied)
			a.stop(t)
			wantTexts(t, b.awaitOwner(t), want...)
			b.stop(t)
		})
	}
}

// newFollower returns a follower with an empty store of the log of a member.
func newFollower(ctx context.Context, t *testing.T, m *member, suspect func(server, reason string)) *follower {
	t.Helper()
	o := m.o
	o.Suspect = suspect
	o = o.withDefaults()
	st, err := openStream(ctx, &o, m.keys.log)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebble.OpenStore("store", pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := &follower{
		st: st, store: store, end: new(atomic.Uint64), applied: new(atomic.Uint64), bytes: new(atomic.Int64),
	}
	if f.mark, err = openMark(filepath.Join(t.TempDir(), "store.mark")); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestBadLog damages a record on all servers. The copy that needs it says that the log is lost.
func TestBadLog(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 3, natstest.Unsafe, natstest.Unverified).team()
	a := tm.start(t, "a", 0, vfs.NewCrashableMem())
	e := a.awaitOwner(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := e.CreateTopic(ctx, 1, retainAll); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		appendText(t, e, "text")
	}
	for i := range tm.g.nats.Size() {
		tm.damageReplica(ctx, t, a, i, true)
	}
	var found suspects
	b := tm.start(t, "b", 1, vfs.NewCrashableMem(), func(o *Options) { o.Suspect = found.add })
	for lost := false; !lost; lost, _ = problemOf(b.Status().Err) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("copy of member b: got %+v, want a lost log", b.Status())
		}
	}
	if got := found.all(); len(got) > 0 {
		t.Errorf("suspected servers: got %q, want none", got)
	}
	b.stop(t)
	a.stop(t)
}

// damageReplica damages a record of the log on one server and makes that server the leader.
func (tm *team) damageReplica(ctx context.Context, t *testing.T, m *member, server int, forge bool) {
	t.Helper()
	stream := streamName(&m.o)
	lead := func() {
		t.Helper()
		if !tm.g.nats.Lead(ctx, m.js.Conn(), stream, server) {
			t.Fatalf("server %d did not become the leader of the log", server)
		}
	}
	lead() // so that it has all records
	tm.g.nats.Stop(server)
	path := filepath.Join(tm.g.nats.Files(server), "$G", "streams", stream, "msgs", "1.blk")
	changeRecord(t, path, stream, 8, forge)
	tm.g.nats.Start(server)
	tm.g.nats.Ready()
	lead()
}
