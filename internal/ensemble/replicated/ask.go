package replicated

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// An append that is not acknowledged in time may wait behind megabytes of other messages. Sending it
// again would make the queue longer. So the writer asks the log's leader instead, with a question
// that takes the same way: it is an append of a few bytes whose condition no log can meet. The leader
// refuses it and names the last sequence that it has accepted. NATS keeps the order of messages from
// one connection to one subject, so the answer also covers everything that was sent before the
// question (docs/adr/0053-ask-before-sending-again.md):
//
//   - The log ends at the entry or after it: the leader has accepted a message with that sequence, and
//     its outcome will be in the log.
//   - The log ends before the entry: the entry did not arrive, and nothing of it is on its way any
//     more. Only then does the writer send it again.
//   - No answer: the question waits in the queue as well. The writer asks again, and sends no entry.
//
// The refusal of an entry is such an answer too. The rule limits the bytes that are sent; it is not
// needed for correctness. An entry that arrives twice is refused or void the second time (resolve.go).

const (
	// minAskWait is how long an append may be unacknowledged, apart from the time for the bytes in
	// flight, before the writer asks about it. maxAskWait bounds it with that time.
	minAskWait = time.Second
	maxAskWait = 30 * time.Second
	// askFactor is how many times the expected time an acknowledgement may take.
	askFactor = 4
	// firstAskInterval is the interval between two questions after an election, when the new leader
	// answers within milliseconds; the interval doubles up to maxAskInterval.
	firstAskInterval = 10 * time.Millisecond
	maxAskInterval   = time.Second
	// silenceTimeout is how long the log may leave an append without any outcome, and stuckTimeout how
	// long if the leader has accepted it. Both are extended by the time for the bytes in flight.
	silenceTimeout = 10 * time.Second
	stuckTimeout   = time.Minute

	// question is the part of the reply subject that distinguishes the answer to a question from
	// the acknowledgement of an entry.
	question = "ask"
	// impossibleEnd is the sequence that a question requires to be the last one. JetStream
	// parses it as a signed number.
	impossibleEnd = math.MaxInt64
)

// answer is what the leader answered about the end of the log.
type answer struct {
	attempt uint64 // value of writer.sends of the message that was answered
	end     uint64 // last sequence that the leader has accepted, committed or not
}

// covers reports whether the answered message was sent with the last attempt of an entry or after it.
func (a answer) covers(e *entry) bool { return a.attempt >= e.attempt }

// ask sends a question. Its answer arrives on w.answers.
func (w *writer) ask() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sends++
	w.metrics.countAsked()
	// No log ends before impossibleEnd. If one did, the message would be void for its readers,
	// because of the index.
	r := record{seq: impossibleEnd + 1, epoch: w.epoch, index: impossibleEnd, owner: w.owner, part: 1, parts: 1}
	reply := w.inbox + "." + question + "." + strconv.FormatUint(w.sends, 10)
	_ = w.conn.PublishMsg(r.message(w.st.subject, reply)) // when it fails, the writer asks again
}

// codeWrongLastSequence is the JetStream error code for an append whose condition is not met.
const codeWrongLastSequence = 10071

// refusedError is an error that the log returned for an append.
type refusedError struct {
	code        int
	description string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("log refused the append: %s (%d)", e.description, e.code)
}

// endOf returns the last sequence of the log that the refusal of an append names.
func endOf(err error) (uint64, bool) {
	var refused *refusedError
	if !errors.As(err, &refused) || refused.code != codeWrongLastSequence {
		return 0, false
	}
	text := refused.description // "wrong last sequence: 17"
	end, err := strconv.ParseUint(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
	return end, err == nil
}

const (
	// flowBytes is the smallest entry whose acknowledgement shows how fast the log takes bytes. The time
	// of smaller ones is that of the round trip.
	flowBytes = 64 << 10
	// firstRate is the assumed rate before the first such entry, in bytes per second. minRate is the
	// lowest rate that the writer expects.
	firstRate = 4 << 20
	minRate   = 128 << 10
	// flowWeight is the weight of the moving average, in entries.
	flowWeight = 8
)

// flow is the rate at which the log acknowledges bytes, as a moving average. The zero value assumes
// firstRate. Protected by writer.mu.
type flow struct {
	rate float64 // bytes per second; 0 until known
	last time.Time
}

// acknowledged notes that an entry was acknowledged now.
func (f *flow) acknowledged(bytes int, sentAt time.Time) {
	now, from := time.Now(), sentAt
	if f.last.After(from) {
		from = f.last // until then the log was busy with the entry before it
	}
	f.last = now
	if bytes < flowBytes {
		return
	}
	rate := float64(bytes) / max(now.Sub(from), time.Microsecond).Seconds()
	if f.rate == 0 {
		f.rate = rate
	}
	f.rate += (rate - f.rate) / flowWeight
}

// expected returns how long the log needs for the given bytes, at most maxAskWait.
func (f *flow) expected(bytes int) time.Duration {
	rate := f.rate
	if rate == 0 {
		rate = firstRate
	}
	seconds := float64(bytes) / max(rate, minRate)
	return min(time.Duration(seconds*float64(time.Second)), maxAskWait)
}

// ackTimeout returns how long an entry may be unacknowledged before the writer asks about it, for the
// bytes in flight when it was sent.
func (f *flow) ackTimeout(ahead int) time.Duration {
	return min(minAskWait+askFactor*f.expected(ahead), maxAskWait)
}
