package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

// lossy provides connections that break when a client publishes to a journal.
type lossy struct {
	to           nats.InProcessConnProvider
	loseRequests atomic.Int64 // number of publishes to lose
	loseAcks     atomic.Int64 // number of publishes to deliver whose acknowledgement is lost

	publishing atomic.Pointer[context.CancelFunc] // called before a publish is delivered
}

func (l *lossy) InProcessConn() (net.Conn, error) {
	conn, err := l.to.InProcessConn()
	return &lossyConn{conn, l}, err
}

type lossyConn struct {
	net.Conn
	l *lossy
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("HPUB freshet.journal.")) {
		return c.Conn.Write(b)
	}
	if cancel := c.l.publishing.Load(); cancel != nil {
		(*cancel)()
	}
	if c.l.loseRequests.Add(-1) >= 0 {
		c.Close()
		return 0, io.ErrClosedPipe
	}
	n, err := c.Conn.Write(b)
	if c.l.loseAcks.Add(-1) >= 0 {
		c.Close()
	}
	return n, err
}

// A caller that saves a snapshot may give up before the acknowledgement arrives. The
// chunks must stay then, because the snapshot may be installed.
func TestASnapshotWithoutAnAcknowledgementIsWhole(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	l := &lossy{to: natsCluster.Server(0)}
	conn, err := nats.Connect("", nats.InProcessServer(l))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	j := openJournal(t, openJournals(t, conn, 1, "x"), "j")
	gaveUp := 0
	for n := uint64(1); n <= 20; n++ {
		if _, err := j.Append(t.Context(), n-1, []byte("a")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.publishing.Store(&cancel)
		err := j.SaveSnapshot(ctx, n, func(w io.Writer) error { _, err := fmt.Fprintf(w, "state %d", n); return err })
		cancel()
		l.publishing.Store(nil)
		if errors.Is(err, context.Canceled) { // else the acknowledgement was faster
			gaveUp++
		} else if err != nil {
			t.Fatal(err)
		}
		position, r, err := j.LoadSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r == nil { // the first snapshot, not installed yet
			continue
		}
		state, err := io.ReadAll(r)
		if want := fmt.Sprintf("state %d", position); string(state) != want || err != nil {
			t.Fatalf("snapshot at %d of %d: got %q, error %v; want %q", position, n, state, err, want)
		}
		_ = r.Close()
	}
	if gaveUp == 0 {
		t.Error("got every acknowledgement in time, want some calls to give up first")
	}
}

func TestAPublishWithoutAnAcknowledgementIsStoredOnce(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		natsCluster := natstest.New(t, servers)
		l := &lossy{to: natsCluster.Server(0)}
		conn, err := nats.Connect("", nats.InProcessServer(l), nats.MaxReconnects(-1),
			nats.ReconnectWait(time.Millisecond), nats.ReconnectBufSize(-1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		j := openJournal(t, openJournals(t, conn, servers, "x"), "j")
		var want []string
		for i, c := range []struct{ request, answer int64 }{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {0, 2}, {0, 0}} {
			l.loseRequests.Store(c.request)
			l.loseAcks.Store(c.answer)
			a, b := fmt.Sprintf("%d/a", i), fmt.Sprintf("%d/b", i)
			last, err := j.Append(t.Context(), uint64(len(want)), []byte(a), []byte(b))
			want = append(want, a, b)
			if err != nil || last != uint64(len(want)) {
				t.Fatalf("%d servers, %d publishes and %d acknowledgements lost: got %d, error %v; want %d", servers,
					c.request, c.answer, last, err, len(want))
			}
		}
		l.loseRequests.Store(0)
		l.loseAcks.Store(0)
		var got []string
		_, err = j.Replay(t.Context(), 0, func(_ uint64, r []byte) error {
			got = append(got, string(r))
			return nil
		})
		if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%d servers: got %q, error %v; want %q", servers, got, err, want)
		}
	}
}

// callAll calls each method of a journal, each with timeout d.
func callAll(j engine.Journal, d time.Duration) map[string]error {
	out := map[string]error{}
	for name, call := range map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { _, err := j.Append(ctx, 1, []byte("x")); return err },
		"last":   func(ctx context.Context) error { _, err := j.Last(ctx); return err },
		"replay": func(ctx context.Context) error {
			_, err := j.Replay(ctx, 1, func(uint64, []byte) error { return nil })
			return err
		},
		"save": func(ctx context.Context) error {
			return j.SaveSnapshot(ctx, 1, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err })
		},
		"load": func(ctx context.Context) error {
			_, r, err := j.LoadSnapshot(ctx)
			if r != nil {
				_, err = io.ReadAll(r)
				_ = r.Close()
			}
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		out[name] = call(ctx)
		cancel()
	}
	return out
}

func TestAServerThatIsGoneIsUnavailableAndComesBack(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	js := openJournals(t, natsCluster.Connect(0), 1, "x")
	j := openJournal(t, js, "j")
	if _, err := j.Append(t.Context(), 0, []byte("a")); err != nil {
		t.Fatal(err)
	}
	natsCluster.Stop(0)
	for name, err := range callAll(j, 300*time.Millisecond) {
		if errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s without a server: got error %v, want kind unavailable", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := js.Journal(ctx, "other"); errs.KindOf(err) != errs.Unavailable ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("open without a server: got error %v, want kind unavailable that wraps the deadline",
			err)
	}
	natsCluster.Start(0)
	for name, err := range callAll(j, 20*time.Second) {
		if err != nil && (name != "append" || !errors.Is(err, engine.ErrConflict)) {
			t.Errorf("%s with a server again: got error %v, want none", name, err)
		}
	}
}

// Open returns why it failed: here there are fewer servers than replicas requested.
func TestOpenReturnsTheReason(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := journal.Open(ctx, natsCluster.Connect(0), journal.Options{Prefix: "x", Replicas: 3})
	if errs.KindOf(err) != errs.Unavailable || errors.Is(err, engine.ErrClosed) ||
		!strings.Contains(fmt.Sprint(err), "replicas > 1 not supported") {
		t.Errorf("three replicas on one server: got error %v, want kind unavailable with the server's reason", err)
	}
}

// When a server closes, its connections close too, so calls do not wait for a response.
func TestAClosedConnectionIsUnavailableImmediately(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	conn := natsCluster.Connect(0)
	j := openJournal(t, openJournals(t, conn, 1, "x"), "j")
	conn.Close()
	for name, err := range callAll(j, 20*time.Second) {
		if errs.KindOf(err) != errs.Unavailable || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got error %v, want kind unavailable without waiting for the timeout", name, err)
		}
	}
}

func TestCloseEndsCalls(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	js := openJournals(t, natsCluster.Connect(0), 1, "x")
	j := openJournal(t, js, "j")
	waiting := make(chan error, 1)
	go func() { waiting <- j.Wait(context.Background(), 0) }()
	js.Close()
	if err := <-waiting; !errors.Is(err, engine.ErrClosed) {
		t.Errorf("wait: got error %v, want %v", err, engine.ErrClosed)
	}
	for name, err := range callAll(j, time.Second) {
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("%s after close: got error %v, want %v", name, err, engine.ErrClosed)
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, s := range strings.Split(string(stacks), "\n\n") {
		isTest := strings.Contains(s, "testing.tRunner(") // of this package, too: parallel tests wait for this one
		if strings.Contains(s, "internal/ensemble/journal.") && !isTest && !strings.Contains(s, "journal_test.Test") {
			t.Errorf("got a goroutine after close, want none:\n%s", s)
		}
	}
}

func TestAnAppendThatIsTooLargeWritesNothing(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	conn := natsCluster.Connect(0)
	j := openJournal(t, openJournals(t, conn, 1, "x"), "j")
	if _, err := j.Append(t.Context(), 0, make([]byte, 9<<20), make([]byte, 9<<20)); !errors.Is(err,
		engine.ErrTooLarge) {
		t.Errorf("18 MiB: got error %v, want %v", err, engine.ErrTooLarge)
	}
	most := make([]byte, conn.MaxPayload()-1<<10-8)
	if last, err := j.Append(t.Context(), 0, most); last != 1 || err != nil {
		t.Errorf("append of the maximum size: got %d, error %v; want 1", last, err)
	}
	size := 0
	if _, err := j.Replay(t.Context(), 0, func(_ uint64, r []byte) error { size = len(r); return nil }); err != nil ||
		size != len(most) {
		t.Errorf("got a record of %d bytes, error %v; want %d", size, err, len(most))
	}
}

func TestLostDataIsNoticed(t *testing.T) {
	natsCluster := natstest.New(t, 1)
	conn := natsCluster.Connect(0)
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	j := openJournal(t, openJournals(t, conn, 1, "x"), "j")
	for i := range uint64(4) {
		if _, err := j.Append(t.Context(), i, []byte("r")); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.SaveSnapshot(t.Context(), 2,
		func(w io.Writer) error { _, err := io.WriteString(w, "state"); return err }); err != nil {
		t.Fatal(err)
	}
	purge(t, js, "J_x")
	_, r, err := j.LoadSnapshot(t.Context())
	if err == nil {
		_, err = io.ReadAll(r)
	}
	if !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("snapshot without its chunks: got error %v, want %v", err, engine.ErrCorrupt)
	}
	purge(t, js, "J_x_j", natsjs.WithPurgeSubject("freshet.journal.x.j.r"))
	if _, err := j.Replay(t.Context(), 2, func(uint64, []byte) error { return nil }); !errors.Is(err,
		engine.ErrCorrupt) {
		t.Errorf("journal without its records: got error %v, want %v", err, engine.ErrCorrupt)
	}
}

func purge(t *testing.T, js natsjs.JetStream, name string, opts ...natsjs.StreamPurgeOpt) {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err == nil {
		err = s.Purge(t.Context(), opts...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A new member replays a journal in batches, from the start and from the middle, while
// the stream holds more messages than one batch.
func TestALongJournalIsRead(t *testing.T) {
	natsCluster := natstest.New(t, 1, natstest.Unsafe)
	j := openJournal(t, openJournals(t, natsCluster.Connect(0), 1, "x"), "j")
	const appends, each = 700, 3
	var last uint64
	for i := range appends {
		var records [][]byte
		for k := range each {
			records = append(records, fmt.Appendf(nil, "%d", i*each+k+1))
		}
		var err error
		if last, err = j.Append(t.Context(), last, records...); err != nil {
			t.Fatal(err)
		}
	}
	other := openJournal(t, openJournals(t, natsCluster.Connect(0), 1, "x"), "j")
	for _, after := range []uint64{0, 1, 1000, 1001, 1002, appends*each - 1, appends * each} {
		next := after
		end, err := other.Replay(t.Context(), after, func(position uint64, record []byte) error {
			next++
			if position != next || string(record) != fmt.Sprint(next) {
				return fmt.Errorf("got %q at %d, want record %d", record, position, next)
			}
			return nil
		})
		if err != nil || end != last || next != last {
			t.Errorf("after %d: got the end %d, error %v; want %d", after, end, err, last)
		}
	}
}

func TestDestroyRemovesEverythingOfOneCluster(t *testing.T) {
	natsCluster := natstest.New(t, 1, natstest.Unsafe)
	conn := natsCluster.Connect(0)
	one, two := openJournals(t, conn, 1, "a"), openJournals(t, conn, 1, "a_b")
	for _, js := range []*journal.Journals{one, two} {
		for _, name := range []string{"j", "a name.with > everything*"} {
			if _, err := openJournal(t, js, name).Append(t.Context(), 0, []byte("r")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := one.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for name := range js.StreamNames(t.Context()).Name() {
		left++
		if !strings.HasPrefix(name, "J_a=5fb") {
			t.Errorf("got stream %s, want it removed", name)
		}
	}
	if left != 3 {
		t.Errorf("got %d streams of the other cluster, want 3", left)
	}
}
