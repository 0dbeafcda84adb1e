package replicated

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"freshet/internal/ensemble/natsserver/natstest"
)

// relay stands between a writer and its log: the writer publishes to the relay, which publishes to
// the stream in the same order. It can hold messages back, as a long queue does, and drop them.
type relay struct {
	conn    *nats.Conn
	subject string // of the stream

	mu        sync.Mutex
	open      chan struct{} // closed while messages pass
	drop      int           // number of appends to drop
	mute      int           // number of appends whose acknowledgement is lost
	appends   []uint64      // index of every append that arrived
	questions int
}

// newRelay returns a relay, and a writer that has begun its epoch through it.
func newRelay(t *testing.T, servers int) (*relay, *writer, *Metrics) {
	t.Helper()
	c := natstest.New(t, servers, natstest.Unsafe)
	st := newTestLog(t, c)
	r := &relay{conn: c.Connect(0), subject: st.subject, open: make(chan struct{})}
	close(r.open)
	st.subject = "relay." + st.name
	if _, err := r.conn.Subscribe(st.subject, r.pass); err != nil {
		t.Fatal(err)
	}
	if err := r.conn.Flush(); err != nil { // the server knows the subscription
		t.Fatal(err)
	}
	w, m := newTestWriter(t, st)
	return r, w, m
}

// newTestLog creates the stream of a log.
func newTestLog(t *testing.T, c *natstest.Cluster) *stream {
	t.Helper()
	js, err := jetstream.New(c.Connect(0))
	if err != nil {
		t.Fatal(err)
	}
	st := &stream{js: js, name: "S_asked_0", subject: "S.asked.0", id: logID{1}}
	eventually(t, "stream of the log", func() bool {
		st.handle, err = st.createFrom(t.Context(), &Options{JetStream: js, Replicas: c.Size()}, st.id, 1)
		return err == nil
	})
	return st
}

// newTestWriter returns a writer that has begun its epoch.
func newTestWriter(t *testing.T, st *stream) (*writer, *Metrics) {
	t.Helper()
	m := NewMetrics()
	w, err := newWriter(st, logPosition{}, "owner", func() bool { return true }, math.MaxInt64, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close(errors.New("test has ended")) })
	if _, err := w.begin(); err != nil {
		t.Fatalf("begin: got error %v, want none", err)
	}
	return w, m
}

func (r *relay) pass(msg *nats.Msg) {
	r.mu.Lock()
	if isQuestion(msg) {
		r.questions++
	} else {
		index, _ := strconv.ParseUint(msg.Header.Get(headIndex), 10, 64)
		r.appends = append(r.appends, index)
	}
	open := r.open
	r.mu.Unlock()
	<-open
	r.mu.Lock()
	defer r.mu.Unlock()
	forward := &nats.Msg{Subject: r.subject, Reply: msg.Reply, Header: msg.Header, Data: msg.Data}
	switch {
	case isQuestion(msg):
	case r.drop > 0:
		r.drop--
		return
	case r.mute > 0:
		r.mute--
		forward.Reply = ""
	}
	_ = r.conn.PublishMsg(forward) // fails only when the test has ended
}

func isQuestion(msg *nats.Msg) bool {
	return msg.Header.Get(nats.ExpectedLastSeqHdr) == strconv.FormatInt(math.MaxInt64, 10)
}

// hold keeps messages back until the returned function is called.
func (r *relay) hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(chan struct{})
	r.open = open
	return sync.OnceFunc(func() { close(open) })
}

// set changes how the next appends are treated.
func (r *relay) set(drop, mute int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop, r.mute = drop, mute
}

func (r *relay) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.questions
}

func (r *relay) arrived() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.appends)
}

// appendBatches appends n random batches and returns a function that waits for all of them.
func appendBatches(t *testing.T, w *writer, n int) (wait func()) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	var open []*pendingAppend
	for range n {
		batch := make([]byte, 256<<10)
		_, _ = random.Read(batch) // never fails
		open = append(open, w.Append(batch).(*pendingAppend))
	}
	return func() {
		t.Helper()
		for i, p := range open {
			if _, err := p.wait(); err != nil {
				t.Fatalf("batch %d: got error %v, want it appended", i, err)
			}
		}
	}
}

// wantIndexes checks that a log contains the entries of a writer from 0 to n, once and in order.
func wantIndexes(t *testing.T, st *stream, n uint64) {
	t.Helper()
	var state jetstream.StreamState
	eventually(t, "state of the log", func() bool {
		var err error
		state, err = st.state(t.Context())
		return err == nil
	})
	at := logPosition{}
	for seq := uint64(1); seq <= state.LastSeq; seq++ {
		var r record
		eventually(t, fmt.Sprint("message ", seq), func() bool {
			var err error
			r, err = st.read(t.Context(), nil, seq)
			return err == nil
		})
		if !r.continues(at) {
			continue // void
		}
		if sum := r.sumAfter(at.sum); sum != r.sum {
			t.Errorf("message %d: got checksum %x, want %x", seq, r.sum, sum)
		}
		at = logPosition{epoch: r.epoch, index: r.index, sum: r.sum}
	}
	if at.index != n {
		t.Errorf("log: got %d batches, want %d", at.index, n)
	}
}

// TestSlowAppendIsSentOnce keeps appends in a queue for longer than the writer waits. The writer asks
// about them and does not send them again: that would make the queue longer.
func TestSlowAppendIsSentOnce(t *testing.T) {
	t.Parallel()
	r, w, m := newRelay(t, 1)
	release := r.hold()
	defer release()
	wait := appendBatches(t, w, 3)
	eventually(t, "questions about the slow append", func() bool { return testutil.ToFloat64(m.asked) >= 2 })
	release()
	wait()
	if got, want := r.arrived(), []uint64{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("appends sent: got indexes %v, want %v", got, want)
	}
	if got := testutil.ToFloat64(m.resent); got != 0 {
		t.Errorf("appends sent again: got %v, want none", got)
	}
	wantIndexes(t, w.st, 3)
}

// TestDroppedAppendIsSentAgain drops an append while the connection stays open, as a leader that steps
// down or a broken route does. The answer to a question, or the refusal of the next append, shows
// that it did not arrive.
func TestDroppedAppendIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint("in flight ", n), func(t *testing.T) {
			t.Parallel()
			r, w, m := newRelay(t, 1)
			r.set(1, 0)
			appendBatches(t, w, n)()
			if got := testutil.ToFloat64(m.resent); got < 1 || got > float64(n) {
				t.Errorf("appends sent again: got %v, want 1 to %d", got, n)
			}
			wantIndexes(t, w.st, uint64(n))
		})
	}
}

// TestLostAcknowledgement drops acknowledgements. The writer finds the appends in the log and sends none
// of them again.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	r, w, m := newRelay(t, 1)
	r.set(0, 2)
	appendBatches(t, w, 3)()
	if got := testutil.ToFloat64(m.resent); got != 0 {
		t.Errorf("appends sent again: got %v, want none", got)
	}
	if r.asked() == 0 {
		t.Error("questions: got none, want some")
	}
	wantIndexes(t, w.st, 3)
}

// TestAppendsDuringChanges moves the leader of the log, or reconnects, while appends are in flight.
// Every append is in the log once and in order.
func TestAppendsDuringChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(context.Context, *natstest.Cluster, *writer) error{
		"leader steps down": func(ctx context.Context, c *natstest.Cluster, w *writer) error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout) // the response may be lost
			defer cancel()
			return c.StepDown(ctx, w.conn, w.st.name)
		},
		"connection reopens": func(_ context.Context, _ *natstest.Cluster, w *writer) error {
			return w.conn.ForceReconnect()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := natstest.New(t, 3, natstest.Unsafe)
			w, m := newTestWriter(t, newTestLog(t, c))
			const rounds, batches = 4, 5
			for i := range rounds {
				wait := appendBatches(t, w, batches)
				if err := change(t.Context(), c, w); err != nil {
					t.Logf("round %d: %v", i, err)
				}
				wait()
			}
			t.Logf("%v questions, %v sent again", testutil.ToFloat64(m.asked), testutil.ToFloat64(m.resent))
			wantIndexes(t, w.st, rounds*batches)
		})
	}
}

// TestAckTimeout checks that waits grow with the bytes in flight and with a slower log.
func TestAckTimeout(t *testing.T) {
	t.Parallel()
	var f flow
	small, large := f.ackTimeout(0), f.ackTimeout(8<<20)
	if small != minAskWait || large <= small {
		t.Errorf("timeout: got %s for nothing and %s for 8 MiB, want %s and more", small, large, minAskWait)
	}
	f.acknowledged(1<<20, time.Now().Add(-4*time.Second)) // 256 KiB/s
	if slow := f.ackTimeout(8 << 20); slow <= large || slow > maxAskWait {
		t.Errorf("timeout for 8 MiB of a slow log: got %s, want more than %s, at most %s", slow, large, maxAskWait)
	}
}
