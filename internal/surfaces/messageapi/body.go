package messageapi

import (
	"bytes"
	"math"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// Bounds of bodies, in bytes. That of a payload is the broker's.
const (
	maxSmallBody = 64 << 10 // options, one id
	idBytes      = 512      // of one id in a batch
)

// receiveBody are the options of consuming calls.
type receiveBody struct {
	TimeoutMillis    *int64 `json:"timeoutMillis"`
	AckTimeoutMillis *int64 `json:"ackTimeoutMillis"`
	MaxMessages      *int64 `json:"maxMessages"`
}

// defaultWait is how long a consumer waits that does not say
// (docs/spec/messages.md#consume).
const defaultWait = 3 * time.Second

func (b *receiveBody) options() (messaging.ReceiveOptions, error) {
	opts := messaging.ReceiveOptions{Wait: defaultWait, Max: 1}
	var err error
	if b.TimeoutMillis != nil {
		if opts.Wait, err = millis("timeoutMillis", *b.TimeoutMillis); err != nil {
			return opts, err
		}
	}
	if b.AckTimeoutMillis != nil {
		if opts.Lease, err = millis("ackTimeoutMillis", *b.AckTimeoutMillis); err != nil {
			return opts, err
		}
		if opts.Lease == 0 {
			return opts, brokerhttp.BadBody("ackTimeoutMillis must be more than 0")
		}
	}
	if b.MaxMessages != nil {
		if *b.MaxMessages < 1 || *b.MaxMessages > math.MaxInt32 {
			return opts, brokerhttp.BadBody("maxMessages must be at least 1")
		}
		opts.Max = int(*b.MaxMessages)
	}
	return opts, nil
}

// millis turns a number into a duration. What does not fit becomes the longest
// there is, which is bounded further down.
func millis(name string, n int64) (time.Duration, error) {
	if n < 0 {
		return 0, brokerhttp.BadBody("%s must not be negative", name)
	}
	if n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64, nil
	}
	return time.Duration(n) * time.Millisecond, nil
}

const timeoutPrefix = `{"timeoutMillis":`

// parseReceive reads the body of a consuming call. The one that
// docs/spec/messages.md#consume shows is read by hand, as it comes with every
// consume: BenchmarkHandler/consume+ack.
func parseReceive(b []byte) (messaging.ReceiveOptions, error) {
	if rest, ok := bytes.CutPrefix(b, []byte(timeoutPrefix)); ok && len(rest) > 1 && len(rest) < 10 &&
		rest[len(rest)-1] == '}' {
		n, digits := int64(0), rest[:len(rest)-1]
		for _, d := range digits {
			if d < '0' || d > '9' {
				n = -1
				break
			}
			n = n*10 + int64(d-'0')
		}
		if n >= 0 && (digits[0] != '0' || len(digits) == 1) {
			return messaging.ReceiveOptions{Wait: time.Duration(n) * time.Millisecond, Max: 1}, nil
		}
	}
	var body receiveBody
	if _, err := brokerhttp.DecodeJSON(b, &body); err != nil {
		return messaging.ReceiveOptions{}, err
	}
	return body.options()
}

// settleBody is the body of calls on ids that have more to say than the id.
type settleBody struct {
	MessageID        string   `json:"messageId"`
	MessageIDs       []string `json:"messageIds"`
	DelayMillis      *int64   `json:"delayMillis"`
	AckTimeoutMillis *int64   `json:"ackTimeoutMillis"`
}

// parseIDs reads one or more ids: one alone as parseID takes it, an array, or
// an object with messageId or messageIds and options.
func parseIDs(b []byte, limit int) ([]names.MessageID, settleBody, error) {
	var body settleBody
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return nil, body, brokerhttp.BadBody("it must hold a message id")
	}
	switch b[0] {
	default:
		id, err := brokerhttp.ParseID(b)
		return []names.MessageID{id}, body, err
	case '[':
		if _, err := brokerhttp.DecodeJSON(b, &body.MessageIDs); err != nil {
			return nil, body, err
		}
	case '{':
		if _, err := brokerhttp.DecodeJSON(b, &body); err != nil {
			return nil, body, err
		}
	}
	list := body.MessageIDs
	if body.MessageID != "" {
		list = append(list, body.MessageID)
	}
	if len(list) == 0 {
		return nil, body, brokerhttp.BadBody("it must hold a message id")
	}
	if len(list) > limit {
		return nil, body, errs.Newf(errs.TooLarge, "%w: it has %d message ids, the limit is %d", messaging.ErrBatch,
			len(list), limit)
	}
	ids := make([]names.MessageID, len(list))
	for i, s := range list {
		var err error
		if ids[i], err = brokerhttp.ParseID([]byte(s)); err != nil {
			return nil, body, err
		}
	}
	return ids, body, nil
}

// flush sends what was written and tells whether it left. A wrapper that
// flushes without saying how it went is passed over for what it wraps.
func flush(w http.ResponseWriter) error {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }:
			return t.FlushError()
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		case http.Flusher:
			t.Flush()
			return nil
		default:
			return nil
		}
	}
}
