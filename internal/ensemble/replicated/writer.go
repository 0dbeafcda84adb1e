package replicated

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"freshet/internal/storage/pebble"
)

const (
	// leaderElected is the prefix of the subject on which a stream's new leader announces
	// itself.
	leaderElected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."
	// maxPartBytes bounds the part of a batch, compressed or not, in one message.
	maxPartBytes = 4 << 20
)

// writer appends an owner's batches to the log. It implements pebble.Log.
type writer struct {
	st      *stream
	conn    *nats.Conn
	epoch   uint64
	owner   string
	live    func() bool
	maxPart int // most bytes of a batch in one message
	mark    *mark
	inbox   string
	subs    []*nats.Subscription

	bound int64        // bytes of the log at which messages are rejected
	bytes atomic.Int64 // approximate size of the log

	appended atomic.Int64 // bytes, compressed, since the writer was created
	metrics  *Metrics
	unacked  *Unacknowledged // includes the data of queue

	mu      sync.Mutex
	end     logPosition // of the last entry, except for its sequence
	known   uint64      // last message of the log whose content is known
	next    uint64      // sequence of the next message to send
	queue   []*entry    // entries not known to be in the log, in order
	sends   uint64      // messages published: appends and questions (ask.go)
	flow    flow        // how fast the log acknowledges
	holding bool        // entries are not sent until the outcome of earlier ones is known
	err     error       // why the writer has ended

	wakeup  chan struct{}    // signal: the queue is not empty
	elected chan struct{}    // signal: the log has a new leader; the old one may have dropped messages
	status  chan nats.Status // signal: the connection is open again
	answers chan answer      // the leader's latest answer about the end of the log
	lost    chan struct{}    // closed when err is set
	ended   chan struct{}    // closed when run has returned

	reopened <-chan nats.Status // is status until it is closed; of the writer's goroutine
}

var _ pebble.Log = (*writer)(nil)

// entry is a record that is being appended to the log. Its sequence is that of the last
// attempt to send it. The sequence, attempt, ahead and sentAt are protected by writer.mu.
type entry struct {
	record
	after   logPosition // the log after this entry; its sequence is set when done is closed
	attempt uint64      // value of writer.sends of the last attempt; 0 before the first
	ahead   int         // bytes in flight at that time, including this entry
	sentAt  time.Time
	acks    chan ackResult
	done    chan struct{} // closed when the entry is in the log

	inquired // of the writer's goroutine
}

type ackResult struct {
	seq uint64
	err error
}

// newWriter creates a writer that continues the log after a position. metrics and unacked may be nil.
func newWriter(st *stream, at logPosition, owner string, live func() bool, bound int64, metrics *Metrics,
	unacked *Unacknowledged,
) (*writer, error) {
	if unacked == nil {
		unacked = new(Unacknowledged)
	}
	conn := st.js.Conn()
	w := &writer{
		st: st, conn: conn, epoch: at.epoch + 1, owner: owner, live: live, end: at, bound: bound,
		known: at.seq, next: at.seq + 1,
		maxPart: min(maxPartBytes, int(conn.MaxPayload())-4096),
		inbox:   conn.NewInbox(),
		metrics: metrics, unacked: unacked,
		wakeup: make(chan struct{}, 1), elected: make(chan struct{}, 1), answers: make(chan answer, 1),
		lost: make(chan struct{}), ended: make(chan struct{}),
	}
	w.end.log = st.id
	w.status = conn.StatusChanged(nats.CONNECTED)
	w.reopened = w.status
	for subject, handler := range map[string]nats.MsgHandler{
		w.inbox + ".*.*":        w.handleReply,
		leaderElected + st.name: func(*nats.Msg) { wake(w.elected) },
	} {
		sub, err := conn.Subscribe(subject, handler)
		if err != nil {
			w.unsubscribe()
			return nil, fmt.Errorf("subscribing to acknowledgements of the log: %w", err)
		}
		w.subs = append(w.subs, sub)
	}
	go w.run()
	return w, nil
}

// begin appends the epoch record. From then on no older owner can append.
func (w *writer) begin() (logPosition, error) {
	w.mu.Lock()
	e := w.enqueueLocked(record{log: w.st.id.String(), part: 1, parts: 1})
	w.mu.Unlock()
	return (&pendingAppend{w, e}).wait()
}

// Append implements pebble.Log.
func (w *writer) Append(batch []byte) pebble.LogAppend {
	data, packing := pack(batch)
	w.bytes.Add(int64(len(data)))
	w.appended.Add(int64(len(data)))
	parts := max(1, (len(data)+w.maxPart-1)/w.maxPart)
	w.mu.Lock()
	defer w.mu.Unlock()
	var last *entry
	for i := range parts {
		part := data[i*w.maxPart : min((i+1)*w.maxPart, len(data))]
		last = w.enqueueLocked(record{part: i + 1, parts: parts, packing: packing, data: part})
	}
	return &pendingAppend{w, last}
}

// enqueueLocked appends a record to the queue and sends it.
func (w *writer) enqueueLocked(r record) *entry {
	r.epoch, r.owner = w.epoch, w.owner
	if !r.isEpoch() {
		r.index = w.end.index + 1
	}
	r.sum = r.sumAfter(w.end.sum)
	w.end.epoch, w.end.index, w.end.sum = r.epoch, r.index, r.sum
	e := &entry{record: r, after: w.end, acks: make(chan ackResult, 1), done: make(chan struct{})}
	if w.err != nil {
		return e
	}
	w.queue = append(w.queue, e)
	w.unacked.bytes.Add(int64(len(e.data)))
	if !w.holding {
		w.sendLocked(e)
	}
	wake(w.wakeup)
	return e
}

// wake sends a signal unless one is pending.
func wake(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// sendLocked publishes an entry on the condition that the log ends before it.
func (w *writer) sendLocked(e *entry) {
	w.sends++
	if e.attempt != 0 {
		w.metrics.countResent()
	}
	e.attempt, e.seq = w.sends, w.next
	w.next++
	e.sentAt, e.ahead = time.Now(), len(e.data)
	for _, before := range w.queue {
		if before == e {
			break
		}
		e.ahead += len(before.data)
	}
	select { // drop the acknowledgement of an earlier attempt
	case <-e.acks:
	default:
	}
	if err := w.conn.PublishMsg(e.message(w.st.subject, w.replySubject(e.index, e.attempt))); err != nil {
		e.deliverAck(ackResult{err: err})
	}
}

// replySubject returns the subject on which the log acknowledges an attempt to append an entry.
func (w *writer) replySubject(index, attempt uint64) string {
	return w.inbox + "." + strconv.FormatUint(index, 10) + "." + strconv.FormatUint(attempt, 10)
}

// deliverAck delivers an acknowledgement; the latest one counts.
func (e *entry) deliverAck(a ackResult) { deliver(e.acks, a) }

// deliver sends a value to a channel with capacity 1 and replaces the value in it.
func deliver[T any](to chan T, v T) {
	for {
		select {
		case to <- v:
			return
		default:
		}
		select {
		case <-to:
		default:
		}
	}
}

// handleReply handles an acknowledgement of the log, or its answer to a question (ask.go).
// A refusal of an earlier attempt says nothing about the last one. An acknowledgement of any
// attempt means that the entry is in the log.
func (w *writer) handleReply(msg *nats.Msg) {
	about, sent, _ := strings.Cut(strings.TrimPrefix(msg.Subject, w.inbox+"."), ".")
	attempt, err := strconv.ParseUint(sent, 10, 64)
	if err != nil {
		return
	}
	a := parseAck(msg)
	w.mu.Lock()
	defer w.mu.Unlock()
	if end, ok := endOf(a.err); ok {
		deliver(w.answers, answer{attempt, end})
	}
	if about == question {
		return
	}
	index, err := strconv.ParseUint(about, 10, 64)
	if err != nil || len(w.queue) == 0 || index < w.queue[0].index ||
		index-w.queue[0].index >= uint64(len(w.queue)) {
		return
	}
	if e := w.queue[index-w.queue[0].index]; a.err == nil || attempt == e.attempt {
		e.deliverAck(a)
	}
}

func parseAck(msg *nats.Msg) ackResult {
	if status := msg.Header.Get("Status"); status != "" {
		return ackResult{err: fmt.Errorf("log returned status %s", status)}
	}
	var ack struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		return ackResult{err: fmt.Errorf("decoding an acknowledgement of the log: %w", err)}
	}
	if ack.Error != nil {
		return ackResult{err: &refusedError{ack.Error.Code, ack.Error.Description}}
	}
	return ackResult{seq: ack.Seq}
}

// run removes the entries that are in the log from the queue, in order.
func (w *writer) run() {
	defer close(w.ended)
	timer := time.NewTimer(minAskWait)
	defer timer.Stop()
	for {
		e, timeout := w.head()
		if e == nil {
			select {
			case <-w.wakeup:
			case <-w.elected: // nothing is in flight
			case _, open := <-w.reopened:
				w.watchConnection(open)
			case <-w.lost:
				return
			}
			continue
		}
		timer.Reset(timeout)
		slow := false
		select {
		case a := <-e.acks:
			if a.err == nil && a.seq == w.known+1 { // no other message can be in between
				w.finish(e, a.seq)
				continue
			}
		case a := <-w.answers: // the refusal of a later entry
			if !a.covers(e) || a.end > w.known {
				continue
			}
		case <-timer.C:
			slow = true
		case <-w.elected:
		case _, open := <-w.reopened:
			w.watchConnection(open)
		case <-w.lost:
			return
		}
		if err := w.resolve(slow); err != nil {
			w.lose(err)
			return
		}
	}
}

// watchConnection stops watching the connection when it does not open again.
func (w *writer) watchConnection(open bool) {
	if !open {
		w.reopened = nil
	}
}

// head returns the first entry of the queue, and how long it may still be unacknowledged before the
// writer asks about it. It returns nil when the queue is empty.
func (w *writer) head() (*entry, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, 0
	}
	e := w.queue[0]
	return e, max(0, w.flow.ackTimeout(e.ahead)-time.Since(e.sentAt))
}

// finish notifies the waiters that the first entry of the queue is in the log. When the
// writer has ended, they already got the error that the outcome is unknown.
func (w *writer) finish(e *entry, seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.known, e.after.seq = seq, seq
	w.flow.acknowledged(len(e.data), e.sentAt)
	w.queue[0] = nil
	w.queue = w.queue[1:]
	w.unacked.bytes.Add(-int64(len(e.data)))
	close(e.done)
}

// lose ends the writer: it sends nothing more, and the outcome of appends in flight is
// unknown.
func (w *writer) lose(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = err
	for _, e := range w.queue {
		w.unacked.bytes.Add(-int64(len(e.data)))
	}
	w.queue = nil
	close(w.lost)
	w.unsubscribe()
}

func (w *writer) unsubscribe() {
	if w.status != nil {
		w.conn.RemoveStatusListener(w.status)
	}
	for _, sub := range w.subs {
		_ = sub.Unsubscribe() // fails only when the connection is closed, which ends the subscription too
	}
}

// close ends the writer and waits until run has returned.
func (w *writer) close(err error) {
	w.lose(err)
	<-w.ended
}

// pendingAppend implements pebble.LogAppend.
type pendingAppend struct {
	w *writer
	e *entry
}

// Wait implements pebble.LogAppend.
func (p *pendingAppend) Wait() ([]byte, error) {
	after, err := p.wait()
	if err != nil {
		return nil, err
	}
	p.w.mark.advance(after) // before a client gets the acknowledgement
	return after.encode(), nil
}

func (p *pendingAppend) wait() (logPosition, error) {
	select {
	case <-p.e.done:
		return p.e.after, nil
	case <-p.w.lost:
	}
	select {
	case <-p.e.done:
		return p.e.after, nil
	default:
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return logPosition{}, p.w.err
}

// Live implements pebble.Log.
func (w *writer) Live() bool { return w.live() }

// Full implements pebble.Log: at the bound messages are rejected, and a quarter above it all
// writes except those that free space.
func (w *writer) Full() (messages, records bool) {
	n := w.bytes.Load()
	return n > w.bound, n > w.bound+w.bound/4
}

// Crowded implements pebble.Log.
func (w *writer) Crowded() bool { return w.unacked.crowded() }

// errRival means that another member has appended to the log.
var errRival = errors.New("another member has appended to the log")
