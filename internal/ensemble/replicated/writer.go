package replicated

import (
	"context"
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
	// ackTimeout is how long an append may be without an answer before the log is
	// read to find out.
	ackTimeout = time.Second
	// resolvePatience is how long an owner tries to find out before it gives up.
	resolvePatience = 10 * time.Second
	// leaderElected begins the subject on which a stream's new leader announces itself.
	leaderElected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."
	// maxPart bounds the part of a batch, packed or not, that goes into one message.
	maxPart = 4 << 20
)

// writer is an owner's way to the log. It implements pebble.Log.
type writer struct {
	st    *stream
	conn  *nats.Conn
	epoch uint64
	owner string
	live  func() bool
	part  int // most bytes in one message
	inbox string
	subs  []*nats.Subscription

	bound int64        // bytes of the log beyond which no messages are taken
	bytes atomic.Int64 // of the log, about

	appended atomic.Int64 // bytes, packed, ever

	mu        sync.Mutex
	end       mark     // of the last entry, but for its position
	known     uint64   // last message of the log whose content is known
	next      uint64   // sequence for the next message that is sent
	queue     []*entry // not known to be in the log, in order
	resolving bool     // nothing is sent but by resolve
	err       error

	wakeup  chan struct{} // the queue is not empty
	elected chan struct{} // the log has another leader; the old one may have dropped what was sent
	lost    chan struct{} // closed with err
	ended   chan struct{} // run has returned
}

var _ pebble.Log = (*writer)(nil)

// entry is a record on its way into the log. Its sequence is that of the last attempt
// to send it; guarded, like sent, by writer.mu.
type entry struct {
	record
	after  mark // its position is known when it is done
	sent   bool
	answer chan answer
	done   chan struct{} // closed when it is in the log
}

type answer struct {
	seq uint64
	err error
}

// newWriter makes a writer that goes on behind a mark.
func newWriter(st *stream, at mark, owner string, live func() bool, bound int64) (*writer, error) {
	conn := st.js.Conn()
	w := &writer{
		st: st, conn: conn, epoch: at.epoch + 1, owner: owner, live: live, end: at, bound: bound,
		known: at.position, next: at.position + 1,
		part:   min(maxPart, int(conn.MaxPayload())-4096),
		inbox:  conn.NewInbox(),
		wakeup: make(chan struct{}, 1), elected: make(chan struct{}, 1),
		lost: make(chan struct{}), ended: make(chan struct{}),
	}
	w.end.log = st.id
	for subject, heard := range map[string]nats.MsgHandler{
		w.inbox + ".*":          w.answered,
		leaderElected + st.name: func(*nats.Msg) { wake(w.elected) },
	} {
		sub, err := conn.Subscribe(subject, heard)
		if err != nil {
			w.unsubscribe()
			return nil, fmt.Errorf("waiting for answers of the log: %w", err)
		}
		w.subs = append(w.subs, sub)
	}
	go w.run()
	return w, nil
}

// begin appends the epoch record: from then on no older owner can append.
func (w *writer) begin() (mark, error) {
	w.mu.Lock()
	e := w.enqueueLocked(record{log: w.st.id.String(), part: 1, parts: 1})
	w.mu.Unlock()
	return (&place{w, e}).wait()
}

// Append implements pebble.Log.
func (w *writer) Append(batch []byte) pebble.Place {
	data, packing := pack(batch)
	w.bytes.Add(int64(len(data)))
	w.appended.Add(int64(len(data)))
	parts := max(1, (len(data)+w.part-1)/w.part)
	w.mu.Lock()
	defer w.mu.Unlock()
	var last *entry
	for i := range parts {
		part := data[i*w.part : min((i+1)*w.part, len(data))]
		last = w.enqueueLocked(record{part: i + 1, parts: parts, packing: packing, data: part})
	}
	return &place{w, last}
}

// enqueueLocked gives a record its place behind all others and sends it.
func (w *writer) enqueueLocked(r record) *entry {
	r.epoch, r.owner = w.epoch, w.owner
	if !r.begins() {
		r.index = w.end.index + 1
	}
	r.sum = r.sumAfter(w.end.sum)
	w.end.epoch, w.end.index, w.end.sum = r.epoch, r.index, r.sum
	e := &entry{record: r, after: w.end, answer: make(chan answer, 1), done: make(chan struct{})}
	if w.err != nil {
		return e
	}
	w.queue = append(w.queue, e)
	if !w.resolving {
		w.sendLocked(e)
	}
	wake(w.wakeup)
	return e
}

// wake leaves a signal, unless there is one.
func wake(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// sendLocked publishes an entry, on the condition that the log ends before it.
func (w *writer) sendLocked(e *entry) {
	e.sent, e.seq = true, w.next
	w.next++
	if err := w.conn.PublishMsg(e.message(w.st.subject, w.inbox+"."+strconv.FormatUint(e.index, 10))); err != nil {
		e.tell(answer{err: err})
	}
}

// tell notes an answer; the latest counts.
func (e *entry) tell(a answer) {
	for {
		select {
		case e.answer <- a:
			return
		default:
		}
		select {
		case <-e.answer:
		default:
		}
	}
}

// answered takes an answer of the log.
func (w *writer) answered(msg *nats.Msg) {
	index, err := strconv.ParseUint(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:], 10, 64)
	if err != nil {
		return
	}
	a := parseAnswer(msg)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 && index >= w.queue[0].index && index-w.queue[0].index < uint64(len(w.queue)) {
		w.queue[index-w.queue[0].index].tell(a)
	}
}

func parseAnswer(msg *nats.Msg) answer {
	if status := msg.Header.Get("Status"); status != "" {
		return answer{err: fmt.Errorf("log answered with status %s", status)}
	}
	var ack struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		return answer{err: fmt.Errorf("answer of the log cannot be read: %w", err)}
	}
	if ack.Error != nil {
		return answer{err: fmt.Errorf("log refused: %s (%d)", ack.Error.Description, ack.Error.Code)}
	}
	return answer{seq: ack.Seq}
}

// run takes the entries that are in the log off the queue, in order.
func (w *writer) run() {
	defer close(w.ended)
	timer := time.NewTimer(ackTimeout)
	defer timer.Stop()
	for {
		e := w.head()
		if e == nil {
			select {
			case <-w.wakeup:
			case <-w.elected: // nothing was on its way
			case <-w.lost:
				return
			}
			continue
		}
		timer.Reset(ackTimeout)
		select {
		case a := <-e.answer:
			if a.err == nil && a.seq == w.known+1 { // nobody else's can be between
				w.finish(e, a.seq)
				continue
			}
		case <-timer.C:
		case <-w.elected:
		case <-w.lost:
			return
		}
		if err := w.resolve(); err != nil {
			w.lose(err)
			return
		}
	}
}

func (w *writer) head() *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil
	}
	return w.queue[0]
}

// finish tells whoever waits that the first entry of the queue is in the log. When the
// writer was ended meanwhile, they have been told that nobody knows.
func (w *writer) finish(e *entry, seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.known, e.after.position = seq, seq
	w.queue[0] = nil
	w.queue = w.queue[1:]
	close(e.done)
}

// lose ends the writer: it may not append any more, and what is on its way may or
// may not get there.
func (w *writer) lose(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = err
	w.queue = nil
	close(w.lost)
	w.unsubscribe()
}

func (w *writer) unsubscribe() {
	for _, sub := range w.subs {
		_ = sub.Unsubscribe() // the connection may be gone, and the subscription with it
	}
}

// close ends the writer and waits for that.
func (w *writer) close(err error) {
	w.lose(err)
	<-w.ended
}

// place implements pebble.Place.
type place struct {
	w *writer
	e *entry
}

// Wait implements pebble.Place.
func (p *place) Wait() ([]byte, error) {
	after, err := p.wait()
	if err != nil {
		return nil, err
	}
	return after.encode(), nil
}

func (p *place) wait() (mark, error) {
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
	return mark{}, p.w.err
}

// Live implements pebble.Log.
func (w *writer) Live() bool { return w.live() }

// Full implements pebble.Log: messages are refused at the bound, and a quarter
// above it all but what frees something.
func (w *writer) Full() (messages, records bool) {
	n := w.bytes.Load()
	return n > w.bound, n > w.bound+w.bound/4
}

// errRival says that somebody else has appended to the log.
var errRival = errors.New("another member has appended to the log")

// pause waits a moment, or until the writer ends or the context does.
func (w *writer) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.lost:
	case <-ctx.Done():
	}
}
