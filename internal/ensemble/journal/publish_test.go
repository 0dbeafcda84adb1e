package journal_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/test/poll"
)

// slowLink provides connections on which everything that a client sends waits in a queue, while the link is
// held, and on which publishes get lost although the connection stays open.
type slowLink struct {
	to nats.InProcessConnProvider

	mu        sync.Mutex
	moved     sync.Cond // signals a change of the fields below
	held      bool
	drop      int // number of attempts to lose
	attempts  int // publishes of records to a journal
	questions int
}

func newSlowLink(to nats.InProcessConnProvider) *slowLink {
	l := &slowLink{to: to}
	l.moved.L = &l.mu
	return l
}

func (l *slowLink) InProcessConn() (net.Conn, error) {
	conn, err := l.to.InProcessConn()
	if err != nil {
		return nil, err
	}
	c := &queuedConn{Conn: conn, l: l}
	go c.forward()
	return c, nil
}

func (l *slowLink) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	l.moved.Broadcast()
}

func (l *slowLink) counts() (attempts, questions int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts, l.questions
}

type queuedConn struct {
	net.Conn
	l      *slowLink
	queue  [][]byte // protected by slowLink.mu
	closed bool     // protected by slowLink.mu
}

func (c *queuedConn) Write(b []byte) (int, error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	questions := bytes.Count(b, []byte(strconv.Itoa(math.MaxInt64)))
	attempts := bytes.Count(b, []byte("HPUB freshet.journal.")) - questions
	c.l.questions += questions
	c.l.attempts += attempts
	if attempts > 0 && c.l.drop > 0 {
		c.l.drop--
		return len(b), nil
	}
	c.queue = append(c.queue, bytes.Clone(b))
	c.l.moved.Broadcast()
	return len(b), nil
}

// forward sends the queue to the server, in order.
func (c *queuedConn) forward() {
	for {
		c.l.mu.Lock()
		for !c.closed && (c.l.held || len(c.queue) == 0) {
			c.l.moved.Wait()
		}
		if c.closed {
			c.l.mu.Unlock()
			return
		}
		first := c.queue[0]
		c.queue = c.queue[1:]
		c.l.mu.Unlock()
		if _, err := c.Conn.Write(first); err != nil {
			return
		}
	}
}

func (c *queuedConn) Close() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.closed = true
	c.l.moved.Broadcast()
	return c.Conn.Close()
}

// linkedJournal opens a journal over a slowLink.
func linkedJournal(t *testing.T) (*slowLink, engine.Journal) {
	t.Helper()
	natsCluster := natstest.New(t, 1)
	l := newSlowLink(natsCluster.Server(0))
	conn, err := nats.Connect("", nats.InProcessServer(l), nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return l, openJournal(t, openJournals(t, conn, 1, "x"), "j")
}

// wantSizes checks the sizes of all records.
func wantSizes(t *testing.T, j engine.Journal, want ...int) {
	t.Helper()
	var got []int
	_, err := j.Replay(t.Context(), 0, func(_ uint64, r []byte) error { got = append(got, len(r)); return nil })
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records: got sizes %v, error %v; want %v", got, err, want)
	}
}

// TestASlowAppendIsSentOnce keeps an append in a queue for longer than the writer waits for its
// acknowledgement. The writer asks about it and does not send it again, which would make the queue longer.
func TestASlowAppendIsSentOnce(t *testing.T) {
	l, j := linkedJournal(t)
	record := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(record)
	l.hold(true)
	done := make(chan error, 1)
	go func() { _, err := j.Append(t.Context(), 0, record); done <- err }()
	poll.Until(t, time.Minute, "two questions", func() bool {
		attempts, questions := l.counts()
		return questions >= 2 || attempts > 1
	})
	l.hold(false)
	if err := <-done; err != nil {
		t.Errorf("append: got error %v, want none", err)
	}
	if attempts, _ := l.counts(); attempts != 1 {
		t.Errorf("append was sent %d times, want once", attempts)
	}
	wantSizes(t, j, len(record))
}

// TestADroppedAppendIsSentAgain loses appends while the connection stays open, as a leader that steps down or
// a broken route does. The answer to a question shows that they did not arrive.
func TestADroppedAppendIsSentAgain(t *testing.T) {
	l, j := linkedJournal(t)
	l.mu.Lock()
	l.drop = 2
	l.mu.Unlock()
	for i := range 2 {
		if last, err := j.Append(t.Context(), uint64(i), make([]byte, i+1)); err != nil || last != uint64(i+1) {
			t.Fatalf("append: got %d, error %v; want %d", last, err, i+1)
		}
	}
	if attempts, questions := l.counts(); attempts != 4 || questions < 2 {
		t.Errorf("got %d attempts and %d questions, want 4 and a question for each lost one", attempts, questions)
	}
	wantSizes(t, j, 1, 2)
}
