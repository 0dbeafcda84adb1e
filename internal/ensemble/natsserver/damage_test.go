package natsserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natsfiles"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/test/parallel"
	"freshet/test/poll"
	"freshet/test/tally"
)

// TestMain runs many tests in parallel, because they mostly wait: a server rejoins and counts as current only
// when that has been so for seconds.
func TestMain(m *testing.M) {
	if natstest.Served() {
		return
	}
	parallel.Set(8)
	os.Exit(m.Run())
}

// damage is a way to damage a file.
type damage struct {
	name string
	do   func(t *testing.T, path string)
}

// damages are the ways to damage a file that has contents.
var damages = []damage{
	{"flip", func(t *testing.T, path string) {
		t.Helper()
		rewrite(t, path, func(data []byte) []byte {
			data[len(data)/2] ^= 4
			return data
		})
	}},
	{"cut", func(t *testing.T, path string) {
		t.Helper()
		rewrite(t, path, func(data []byte) []byte { return data[:len(data)/2] })
	}},
	{"zero", func(t *testing.T, path string) {
		t.Helper()
		rewrite(t, path, func(data []byte) []byte {
			if len(data) < 64 {
				clear(data)
			}
			clear(data[len(data)/3 : len(data)/2+1])
			return data
		})
	}},
	{"delete", func(t *testing.T, path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}},
}

func rewrite(t *testing.T, path string, edit func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, edit(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fileKinds are the kinds of files of a server: the first file that matches is damaged.
var fileKinds = []struct{ name, pattern string }{
	{"block of a stream", `$G/streams/S/msgs/*.blk`},
	{"index of a stream", `$G/streams/S/msgs/index.db`},
	{"description of a stream", `$G/streams/S/meta.inf`},
	{"checksum of a description", `$G/streams/S/meta.sum`},
	{"state of a consumer", `$G/streams/S/obs/d/o.dat`},
	{"log of a group", `$SYS/_js_/C-R3F-*/msgs/*.blk`},
	{"snapshot of a group", `$SYS/_js_/S-R3F-*/snapshots/snap.*`},
	{"vote of a group", `$SYS/_js_/S-R3F-*/tav.idx`},
	{"peers of a group", `$SYS/_js_/S-R3F-*/peers.idx`},
	{"snapshot of the meta layer", `$SYS/_js_/_meta_/snapshots/snap.*`},
	{"vote of the meta layer", `$SYS/_js_/_meta_/tav.idx`},
	{"peers of the meta layer", `$SYS/_js_/_meta_/peers.idx`},
}

const records = 60

// ensemble is a cluster with a stream S of records and a consumer, and a damaged server.
type ensemble struct {
	*natstest.Cluster
	t   *testing.T
	js  jetstream.JetStream
	ctx context.Context
}

const victim = 2

func newEnsemble(t *testing.T, opts ...natstest.Option) *ensemble {
	t.Helper()
	c := natstest.New(t, 3, opts...)
	e := &ensemble{Cluster: c, t: t, js: open(t, c, 0), ctx: withTimeout(t, 10*time.Minute)}
	c.CreateStream(e.ctx, e.js, streamConfig(3))
	e.publish(records)
	e.retry("creating a consumer", func(ctx context.Context) error {
		consumer, err := e.js.CreateOrUpdateConsumer(ctx, "S", jetstream.ConsumerConfig{
			Durable: "d", AckPolicy: jetstream.AckExplicitPolicy,
		})
		if err != nil {
			return err
		}
		msg, err := consumer.Next(jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return err
		}
		return msg.DoubleAck(ctx)
	})
	return e
}

func (e *ensemble) retry(what string, do func(ctx context.Context) error) {
	e.t.Helper()
	for {
		try, cancel := context.WithTimeout(e.ctx, 5*time.Second)
		err := do(try)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-e.ctx.Done():
			e.t.Fatalf("%s: got error %v, want none", what, err)
		}
	}
}

func (e *ensemble) publish(number int) {
	e.t.Helper()
	for range number {
		e.retry("publishing", func(ctx context.Context) error {
			_, err := e.js.Publish(ctx, "s", []byte(strings.Repeat("record ", 20)))
			return err
		})
	}
}

// count returns the number of messages of the stream.
func (e *ensemble) count() uint64 {
	e.t.Helper()
	var n uint64
	e.retry("reading the state of the stream", func(ctx context.Context) error {
		s, err := e.js.Stream(ctx, "S")
		if err == nil {
			n = s.CachedInfo().State.LastSeq
		}
		return err
	})
	return n
}

// awaitHealed waits until the server has no damage and is current, and checks that its own files contain
// all messages.
func (e *ensemble) awaitHealed(i int, want uint64) {
	e.t.Helper()
	e.retry("healing", func(context.Context) error {
		if p := e.Integrity(i).Part("logs"); !p.Damaged.IsZero() || p.Verified.IsZero() {
			return fmt.Errorf("part is %+v", p)
		}
		return e.Server(i).Current()
	})
	// The server itself has all messages: it can serve them as the leader.
	if !e.Lead(e.ctx, e.js.Conn(), "S", i) {
		e.t.Fatalf("server %d did not become the leader", i)
	}
	e.checkMessages(i, want)
}

// checkMessages reads all messages of the stream from the server that leads it.
func (e *ensemble) checkMessages(i int, want uint64) {
	e.t.Helper()
	for seq := uint64(1); seq <= want; seq++ {
		e.retry(fmt.Sprintf("reading message %d of server %d", seq, i), func(ctx context.Context) error {
			s, err := e.js.Stream(ctx, "S")
			if err != nil {
				return err
			}
			_, err = s.GetMsg(ctx, seq)
			return err
		})
	}
}

// file returns the first file of a server that matches a pattern.
func (e *ensemble) file(i int, pattern string) string {
	e.t.Helper()
	found, err := filepath.Glob(filepath.Join(e.Files(i), pattern))
	if err != nil || len(found) == 0 {
		e.t.Fatalf("got no file %s and error %v, want one", pattern, err)
	}
	return found[0]
}

// TestFaultDamagedAfterStop damages each kind of file in each way after a server was stopped in good
// order. The server notices, fetches good copies and has all messages.
func TestFaultDamagedAfterStop(t *testing.T) {
	t.Parallel()
	const each = 3 // kinds of files for an ensemble
	for first := 0; first < len(fileKinds); first += each {
		t.Run(fmt.Sprintf("kinds from %d", first), func(t *testing.T) {
			t.Parallel()
			e := newEnsemble(t)
			injected := 0
			for i := first; i < min(first+each, len(fileKinds)); i++ {
				// Each takes seconds; test/ensemble/damage has all kinds with all damages.
				kind, d := fileKinds[i], damages[(len(fileKinds)-i)%len(damages)]
				e.Stop(victim)
				path := e.file(victim, kind.pattern)
				d.do(t, path)
				before := e.Integrity(victim).Part("logs").Damages
				e.Start(victim)
				derived := strings.HasSuffix(path, "index.db")
				if got := e.Integrity(victim).Part("logs"); got.Damages == before && (!derived || d.name != "delete") {
					t.Errorf("%s, %s: got %+v, want damage", kind.name, d.name, got)
				}
				e.publish(5)
				e.awaitHealed(victim, e.count())
				injected++
			}
			if !t.Failed() {
				tally.Fault{Name: "file of a stopped server damaged", Injected: injected, Checked: injected}.Record(t)
			}
		})
	}
}

// TestFaultDamagedAfterKill damages files of a server that was killed.
func TestFaultDamagedAfterKill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, damage string }{
		{"block of a stream", "flip"},
		{"log of a group", "delete"},
		{"vote of a group", "zero"},
		{"peers of the meta layer", "flip"},
	} {
		t.Run(c.kind+", "+c.damage, func(t *testing.T) {
			t.Parallel()
			e := newEnsemble(t, natstest.Processes(victim))
			awaitFloors(t, e, victim)
			e.Stop(victim)
			e.Adopt(victim)
			isKind := func(k struct{ name, pattern string }) bool { return k.name == c.kind }
			kind := fileKinds[slices.IndexFunc(fileKinds, isKind)]
			d := damages[slices.IndexFunc(damages, func(d damage) bool { return d.name == c.damage })]
			d.do(t, e.file(victim, kind.pattern))
			e.Start(victim)
			if got := e.Integrity(victim).Part("logs"); got.Damages == 0 {
				t.Errorf("got %+v, want damage", got)
			}
			e.awaitHealed(victim, e.count())
			if !t.Failed() {
				tally.Fault{Name: "file of a killed server damaged", Injected: 1, Checked: 1}.Record(t)
			}
		})
	}
}

// awaitFloors waits until a server has recorded the ends of the logs of the stream and of its consumer.
func awaitFloors(t *testing.T, e *ensemble, i int) {
	t.Helper()
	e.retry("awaiting floors", func(context.Context) error {
		floors, err := natsfiles.ReadFloors(filepath.Join(e.State(i), "floors"))
		if err != nil {
			return err
		}
		stream, consumer := false, false
		for name, g := range floors.Groups {
			stream = stream || strings.HasPrefix(name, "S-") && g.Committed >= records
			consumer = consumer || strings.HasPrefix(name, "C-") && g.Committed >= 2
		}
		if !stream || !consumer {
			return fmt.Errorf("floors are %+v", floors)
		}
		return nil
	})
}

// TestFaultLogLostItsEnd cuts the log of a killed server between two records, which no checksum shows.
// The server does not take part with the shorter log.
func TestFaultLogLostItsEnd(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t, natstest.Processes(victim))
	awaitFloors(t, e, victim)
	e.Stop(victim)
	e.Adopt(victim)
	log := e.file(victim, `$SYS/_js_/C-R3F-*/msgs/*.blk`)
	rewrite(t, log, func(data []byte) []byte {
		first := int(data[0]) | int(data[1])<<8
		return data[:first]
	})
	e.Start(victim)
	if p := e.Integrity(victim).Part("logs"); !strings.Contains(p.Problem, "log lost its end") {
		t.Errorf("got %+v, want a log that lost its end", p)
	}
	e.awaitHealed(victim, e.count())
	tally.Fault{Name: "log of a killed server cut between records", Injected: 1, Checked: 1}.Record(t)
}

// TestFaultWaitsForAllOthers: a damaged server does not take part while another one is stopped, says so,
// and rejoins when all others are current.
func TestFaultWaitsForAllOthers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var reports []string
	e := newEnsemble(t, natstest.Waiting(func(_ int, why string) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, why)
	}))
	e.Stop(victim)
	e.Stop(1)
	damages[0].do(t, e.file(victim, `$SYS/_js_/_meta_/snapshots/snap.*`))
	var started sync.WaitGroup
	started.Go(func() { e.Start(victim) })
	e.retry("waiting for the report", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(reports) < 3 {
			return fmt.Errorf("got reports %q", reports)
		}
		return nil
	})
	mu.Lock()
	if want := "server 1 is stopped"; !strings.Contains(reports[2], want) || !strings.Contains(reports[2], "snap.") {
		t.Errorf("got %q, want %q and the file", reports[2], want)
	}
	mu.Unlock()
	if e.Server(victim) != nil {
		t.Error("the damaged server runs, want it to wait")
	}
	if _, err := os.Stat(e.Files(victim)); !os.IsNotExist(err) {
		t.Errorf("got error %v, want the files in quarantine", err)
	}
	e.Start(1)
	started.Wait()
	e.awaitHealed(victim, records)
	if _, err := os.Stat(filepath.Join(e.State(victim), "rejoining")); !os.IsNotExist(err) {
		t.Errorf("got error %v, want the mark removed", err)
	}
	tally.Fault{Name: "damaged server while another one is stopped", Injected: 1, Checked: 1}.Record(t)
}

// TestSuspectReplacesDamagedFiles damages a block of a running server, which does not notice it without help. While
// another server is stopped, the suspected one gives up the streams that it leads.
func TestSuspectReplacesDamagedFiles(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t)
	damages[0].do(t, e.file(victim, `$G/streams/S/msgs/*.blk`))
	e.Stop(1)
	if !e.Lead(e.ctx, e.js.Conn(), "S", victim) {
		t.Fatal("the suspected server did not become the leader")
	}
	e.Server(victim).Suspect("a record does not verify")
	poll.Until(t, 2*time.Minute, "server 0 leads the stream", func() bool {
		return e.Leader(e.ctx, e.js.Conn(), "S") == 0
	})
	if p := e.Integrity(victim).Part("logs"); p.Damages != 1 || p.Problem != "a record does not verify" {
		t.Errorf("got %+v, want the suspicion", p)
	}
	if found := e.Integrity(victim).Quarantined(); len(found) > 0 {
		t.Errorf("got %v in quarantine while another server is stopped, want no examination", found)
	}
	e.Start(1)
	e.awaitHealed(victim, records)
	if found := e.Integrity(victim).Quarantined(); len(found) != 1 {
		t.Errorf("got %v in quarantine, want the damaged files", found)
	}
}

// TestSuspectReplacesRefutedFiles suspects a server whose files verify. The first examination clears the
// suspicion, the next one replaces the files: what they contain was stored like that.
func TestSuspectReplacesRefutedFiles(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t, natstest.VerifyInterval(time.Second))
	e.Server(victim).Suspect("a record does not verify")
	e.awaitHealed(victim, records)
	if found := e.Integrity(victim).Quarantined(); len(found) > 0 {
		t.Errorf("got %v in quarantine, want files that verify in their place", found)
	}
	e.Server(victim).Suspect("a record does not verify")
	e.awaitHealed(victim, records)
	if found := e.Integrity(victim).Quarantined(); len(found) != 1 {
		t.Errorf("got %v in quarantine, want the files that were suspected again", found)
	}
}

// TestDamageBeforeStop damages a block of a running server, which then stops in good order.
func TestDamageBeforeStop(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t)
	damages[0].do(t, e.file(victim, `$G/streams/S/msgs/*.blk`))
	e.Stop(victim)
	e.Start(victim)
	if p := e.Integrity(victim).Part("logs"); p.Damages != 1 {
		t.Errorf("got %+v, want one damage", p)
	}
	e.awaitHealed(victim, records)
}

// TestBackgroundVerification damages snapshots of a running server, which finds and replaces them.
func TestBackgroundVerification(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t, natstest.VerifyInterval(100*time.Millisecond))
	damaged := ""
	e.retry("waiting for the damage", func(context.Context) error {
		found, err := filepath.Glob(filepath.Join(e.Files(victim), `$SYS/_js_/_meta_/snapshots/snap.*`))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("got snapshots %q and error %w, want one", found, err)
		}
		if path := found[len(found)-1]; path != damaged { // the server may have written another one
			damages[0].do(t, path)
			damaged = path
		}
		if p := e.Integrity(victim).Part("logs"); p.Damages == 0 {
			return fmt.Errorf("part is %+v", p)
		}
		return nil
	})
	e.awaitHealed(victim, records)
}
