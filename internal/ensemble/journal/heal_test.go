package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// damages are ways in which the stream of a journal with 30 records loses some.
var damages = []struct {
	name   string
	inject func(g *team, js natsjs.JetStream)
}{
	{"stream deleted", func(g *team, js natsjs.JetStream) {
		if err := js.DeleteStream(context.Background(), g.stream()); err != nil {
			g.t.Fatal(err)
		}
	}},
	{"records removed", func(g *team, js natsjs.JetStream) {
		g.purge(js, g.stream(), natsjs.WithPurgeSubject("freshet.journal.x."+g.name+".r"), natsjs.WithPurgeSequence(20))
	}},
	{"all messages removed", func(g *team, js natsjs.JetStream) { g.purge(js, g.stream()) }},
	{"chunks of the snapshot removed", func(g *team, js natsjs.JetStream) {
		g.purge(js, "J_x", natsjs.WithPurgeSubject("freshet.snapshot.x."+g.name+".>"))
	}},
	{"stream recreated with fewer records", func(g *team, js natsjs.JetStream) { g.shorten(js, true) }},
	{"other stream of the same name", func(g *team, js natsjs.JetStream) { g.shorten(js, false) }},
	{"a record zeroed on all servers", func(g *team, _ natsjs.JetStream) { g.zero("record 25 ") }},
}

func (g *team) purge(js natsjs.JetStream, stream string, opts ...natsjs.StreamPurgeOpt) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, opts...)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// shorten replaces the stream by one without the last messages, with the same identity or without one. Members that
// run can rebuild the journal before the stream has the other messages; then they have removed the stream.
func (g *team) shorten(js natsjs.JetStream, same bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	s, err := js.Stream(ctx, g.stream())
	if err != nil {
		g.t.Fatal(err)
	}
	config := s.CachedInfo().Config
	var kept []*natsjs.RawStreamMsg
	for seq := s.CachedInfo().State.FirstSeq; seq < s.CachedInfo().State.LastSeq-4; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err == nil {
			kept = append(kept, m)
		}
	}
	config.FirstSeq = kept[0].Sequence
	if err := js.DeleteStream(ctx, g.stream()); err != nil {
		g.t.Fatal(err)
	}
	if !same {
		config.Metadata = nil
	}
	g.nats.CreateStream(ctx, js, config)
	for _, m := range kept {
		msg := nats.NewMsg(m.Subject)
		msg.Data, msg.Header = m.Data, m.Header
		msg.Header.Del(nats.ExpectedLastSeqHdr)
		if _, err := js.PublishMsg(ctx, msg); err != nil {
			if _, gone := js.Stream(ctx, config.Name); !errors.Is(gone, natsjs.ErrStreamNotFound) {
				g.t.Fatalf("publishing to stream %s (its state: %v): got error %v, want none", config.Name, gone, err)
			}
			return
		}
	}
}

// zero zeroes a record in the stream's files of all servers, one after the other.
func (g *team) zero(record string) {
	g.t.Helper()
	for i := range g.nats.Size() {
		g.zeroOn(i, record)
	}
}

// zeroOn zeroes a record in the stream's files of a server, which it restarts.
func (g *team) zeroOn(i int, record string) {
	g.t.Helper()
	dir := g.nats.Dir(i)
	g.until(func() string {
		if err := g.nats.Server(i).Current(); err != nil {
			return fmt.Sprintf("server %d has not all records: %v", i, err)
		}
		return ""
	})
	g.nats.Stop(i)
	found := 0
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blk" || !strings.Contains(path, "/streams/"+g.stream()+"/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := bytes.Index(text, []byte(record)); at >= 0 {
			found++
			clear(text[at : at+64])
			return os.WriteFile(path, text, 0o600)
		}
		return nil
	})
	if err != nil || found == 0 {
		g.t.Fatalf("zeroing a record of server %d: got %d blocks, error %v; want one", i, found, err)
	}
	g.nats.Start(i)
	g.nats.Ready()
}

// TestFenceWithAKnownSequence fences a stream that has lost its last message, so that the fence has the sequence of the
// last message that a writer knows. The writer's append is refused, because the rebuilt journal would not have it.
func TestFenceWithAKnownSequence(t *testing.T) {
	t.Parallel()
	g := newTeam(t)
	g.start("a", "b")
	g.open("a", "b")
	g.append(0, 5, "b")
	ctx, cancel := context.WithTimeout(t.Context(), teamWait)
	defer cancel()
	after := g.member("b").js.KnowLost(g.name)
	if err := g.member("a").js.Fence(ctx, g.name); err != nil {
		t.Fatal(err)
	}
	if last, err := g.member("b").j.Append(ctx, after, []byte("after the fence")); err == nil {
		t.Errorf("append after the fence: got position %d, want an error", last)
	} else if ctx.Err() != nil {
		t.Errorf("append after the fence: got %v after the deadline, want an error at once", err)
	}
}

// TestABadReplica zeroes a record on one server, which leads the journal. Members get the record from another
// server: the journal is not lost, and the server is suspected.
func TestABadReplica(t *testing.T) {
	t.Parallel()
	g := newTeam(t)
	g.start("a", "b", "c")
	g.open("a", "b", "c")
	last := g.append(0, 30, "a", "b", "c")
	want, _ := g.content("a")
	g.awaitCopies(last, "a", "b", "c")
	const bad = 2
	g.zeroOn(bad, "record 12 ")
	ctx, cancel := context.WithTimeout(t.Context(), 2*teamWait)
	defer cancel()
	conn := g.nats.Connect(0)
	g.until(func() string {
		// A member that starts knows no records. Any server may answer it, until the damaged one does.
		g.stop("c")
		if !g.nats.Lead(ctx, conn, g.stream(), bad) {
			return "the damaged server did not become the leader"
		}
		g.start("c")
		g.open("c")
		g.check(want, last)
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.suspects) != 1 || g.suspects["n2"] == "" {
			return fmt.Sprintf("got suspected servers %v, want n2", g.suspects)
		}
		return ""
	})
	js, err := natsjs.New(g.nats.Connect(0))
	if err == nil {
		_, err = js.Stream(ctx, g.stream()) // not replaced by a rebuilt one
	}
	if err != nil {
		t.Errorf("stream of the journal: got error %v, want none", err)
	}
}

// TestALostJournalIsRebuilt damages the stream of a journal while its members run, and while they are
// stopped. The journal continues with the same records at the same positions.
func TestALostJournalIsRebuilt(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("members stopped %t", stopped), func(t *testing.T) {
			t.Parallel()
			g := newTeam(t)
			for i, damage := range damages {
				t.Run(damage.name, func(t *testing.T) {
					g.t, g.name = t, fmt.Sprintf("j%d", i)
					g.loseAndRebuild(damage.inject, damage.name != "records removed", stopped)
				})
			}
		})
	}
}

// loseAndRebuild damages the stream of a journal and checks that the journal continues.
func (g *team) loseAndRebuild(inject func(g *team, js natsjs.JetStream), snapshot, stopped bool) {
	g.t.Helper()
	g.start("a", "b", "c")
	g.open("a", "b", "c")
	last := g.append(0, 20, "a", "b", "c")
	if snapshot {
		g.snapshot("b", 15)
	}
	last = g.append(last, 10, "c", "a", "b")
	want, _ := g.content("a")
	g.awaitCopies(last, "a", "b", "c")
	if stopped {
		g.stop("a", "b", "c")
	}
	js, err := natsjs.New(g.nats.Connect(0))
	if err != nil {
		g.t.Fatal(err)
	}
	inject(g, js)
	g.start("a", "b", "c")
	g.open("a", "b", "c")
	g.check(want, last)
	last = g.append(last, 5, "a", "b", "c")
	after, _ := g.content("a")
	g.check(after, last)
}
