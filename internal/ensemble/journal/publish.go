package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A publish that is not acknowledged in time may wait behind megabytes of other messages. Sending it again
// would make the queue longer. So the writer asks the stream's leader instead, with a question that takes the
// same way: a message without data whose condition no stream can meet. The leader refuses it and names the last
// sequence that it has accepted, committed or not. NATS keeps the order of messages from one connection to one
// subject, so the answer also covers the message that was sent before
// (docs/adr/0053-ask-before-sending-again.md):
//
//   - The stream ends before the message: it did not arrive, and the writer sends it again.
//   - The stream ends at the message or after it: the writer reads which message has the sequence, and waits
//     while none is committed.
//   - No answer: the question waits in the queue as well, or there is no leader. The writer asks again.
//
// Nothing of this is needed for correctness: of two attempts with the same condition at most one is stored.

const (
	// ackTimeout is how long a message may be unacknowledged before the writer asks about it. A question has
	// 300 bytes and repeats no data, so it does no harm when the stream is only slow.
	ackTimeout = 400 * time.Millisecond
	// firstAskInterval is the interval between two questions; it doubles up to maxAskInterval.
	firstAskInterval = 50 * time.Millisecond
	maxAskInterval   = time.Second
	// impossibleEnd is the sequence that a question requires to be the last one. JetStream parses it as a
	// signed number.
	impossibleEnd = math.MaxInt64
	// maxReplies bounds the replies that wait while the writer reads the stream. When one is dropped, the writer
	// asks again.
	maxReplies = 16
)

var (
	// errNotArrived means that the leader does not have the message and that no attempt is on its way.
	errNotArrived = errors.New("message did not arrive at the stream's leader")
	// errAccepted means that the leader has a message at the sequence, which may not be committed.
	errAccepted = errors.New("stream's leader has accepted a message at the sequence, but has not acknowledged it")
)

// replies receives the leaders' replies to the messages of all publishers.
type replies struct {
	inbox string
	sub   *nats.Subscription

	mu         sync.Mutex            // a leaf
	publishers map[uint64]*publisher // by id; protected by mu
	lastID     uint64                // protected by mu
}

// start subscribes to the replies.
func (r *replies) start(conn *nats.Conn) (err error) {
	r.inbox, r.publishers = conn.NewInbox(), map[uint64]*publisher{}
	r.sub, err = conn.Subscribe(r.inbox+".*.*", r.handle)
	return err
}

// stop ends the subscription.
func (r *replies) stop() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // the connection may be closed already
	}
}

// handle passes a reply to its publisher.
func (r *replies) handle(msg *nats.Msg) {
	id, number, _ := strings.Cut(strings.TrimPrefix(msg.Subject, r.inbox+"."), ".")
	to, err1 := strconv.ParseUint(id, 10, 64)
	sent, err2 := strconv.ParseUint(number, 10, 64)
	if errors.Join(err1, err2) != nil {
		return
	}
	r.mu.Lock()
	p := r.publishers[to]
	r.mu.Unlock()
	if p == nil {
		return
	}
	seq, err := parseAck(msg)
	select {
	case p.replies <- reply{sent, seq, err}:
	default:
	}
}

// reply is a leader's reply to a message.
type reply struct {
	number uint64 // of the message, in the order in which the publisher has sent them
	seq    uint64
	err    error
}

// publisher publishes one message at one sequence of a stream. One goroutine uses it.
type publisher struct {
	s   *Journals
	id  uint64
	msg *nats.Msg
	seq uint64 // that the message is to get

	sent     uint64          // number of messages sent, attempts and questions
	attempts map[uint64]bool // the numbers of the attempts among them
	last     uint64          // number of the last attempt
	wait     time.Duration   // until the next question
	replies  chan reply
}

// newPublisher returns a publisher. The caller must call end.
func (s *Journals) newPublisher(msg *nats.Msg, seq uint64) *publisher {
	p := &publisher{s: s, msg: msg, seq: seq, attempts: map[uint64]bool{}, replies: make(chan reply, maxReplies)}
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	s.replies.lastID++
	p.id = s.replies.lastID
	s.replies.publishers[p.id] = p
	return p
}

// end forgets the publisher; later replies are dropped.
func (p *publisher) end() {
	p.s.replies.mu.Lock()
	defer p.s.replies.mu.Unlock()
	delete(p.s.replies.publishers, p.id)
}

// publish sends a message of the publisher and returns its number.
func (p *publisher) publish(msg *nats.Msg) (uint64, error) {
	p.sent++
	msg.Reply = fmt.Sprintf("%s.%d.%d", p.s.replies.inbox, p.id, p.sent)
	return p.sent, p.s.conn.PublishMsg(msg)
}

// send makes an attempt to store the message.
func (p *publisher) send() (err error) {
	p.last, err = p.publish(p.msg)
	p.attempts[p.last] = true
	p.wait = ackTimeout
	return err
}

// ask sends a question.
func (p *publisher) ask() error {
	msg := nats.NewMsg(p.msg.Subject)
	msg.Header.Set(nats.ExpectedLastSeqHdr, strconv.FormatInt(impossibleEnd, 10))
	_, err := p.publish(msg)
	if errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	return nil // without a connection, the publisher asks again
}

// await returns the sequence when the message is stored. It returns the error of a reply that refused the last
// attempt, errNotArrived, errAccepted, or why it has stopped waiting. After errAccepted it can be called again.
func (p *publisher) await(ctx context.Context) (uint64, error) {
	timer := time.NewTimer(p.wait)
	defer timer.Stop()
	for {
		select {
		case r := <-p.replies:
			attempt := p.attempts[r.number]
			end, known := endOf(r.err)
			switch {
			case attempt && r.err == nil:
				return r.seq, nil // of any attempt
			case r.number < p.last: // says nothing about the last attempt
			case attempt:
				return 0, r.err
			case known && end < p.seq:
				return 0, errNotArrived
			case known:
				return 0, errAccepted
			}
		case <-timer.C:
			if err := p.ask(); err != nil {
				return 0, err
			}
			p.wait = min(2*p.wait, maxAskInterval)
			if p.sent == p.last+1 { // the first question about this attempt
				p.wait = firstAskInterval
			}
			timer.Reset(p.wait)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// endOf returns the last sequence of a stream that the refusal of a message names.
func endOf(err error) (uint64, bool) {
	var refused *apiError
	if !errors.As(err, &refused) || refused.ErrCode != codeWrongLastSequence {
		return 0, false
	}
	text := refused.Description // "wrong last sequence: 17"
	end, err := strconv.ParseUint(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
	return end, err == nil
}

// parseAck returns the sequence at which the server stored a message, or the error of its reply.
func parseAck(msg *nats.Msg) (uint64, error) {
	if msg.Header.Get("Status") == "503" {
		return 0, nats.ErrNoResponders
	}
	var ack struct {
		Error  *apiError `json:"error"`
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
	}
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		return 0, fmt.Errorf("decoding the publish acknowledgement: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	if ack.Stream == "" || ack.Seq == 0 {
		return 0, errors.New("publish acknowledgement has no stream or no sequence")
	}
	return ack.Seq, nil
}
