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

// Limits of bodies, in bytes. The broker configures the limit of a payload.
const (
	maxSmallBody = 64 << 10 // options, one id
	idBytes      = 512      // one id in a batch
)

// receiveBody are the options of consuming calls.
type receiveBody struct {
	TimeoutMillis    *int64 `json:"timeoutMillis"`
	AckTimeoutMillis *int64 `json:"ackTimeoutMillis"`
	MaxMessages      *int64 `json:"maxMessages"`
}

// defaultTimeout is how long a consumer waits that sends no timeoutMillis
// (docs/spec/messages.md#consume).
const defaultTimeout = 3 * time.Second

func (b *receiveBody) options() (messaging.ReceiveOptions, error) {
	opts := messaging.ReceiveOptions{Wait: defaultTimeout, Max: 1}
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

// millis converts milliseconds to a duration. A number that does not fit becomes the
// maximum duration, which the broker limits further.
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

// parseReceive parses the body of a consuming call. It has a fast path for the body in
// docs/spec/messages.md#consume, because most consume calls send it; see
// BenchmarkHandler/consume+ack.
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

// settleBody is the body of calls on message ids with options.
type settleBody struct {
	MessageID        string   `json:"messageId"`
	MessageIDs       []string `json:"messageIds"`
	DelayMillis      *int64   `json:"delayMillis"`
	AckTimeoutMillis *int64   `json:"ackTimeoutMillis"`
}

// parseIDs parses one or more ids: a single id as brokerhttp.ParseID accepts it, an
// array, or an object with messageId or messageIds and options.
func parseIDs(b []byte, limit int) ([]names.MessageID, settleBody, error) {
	var body settleBody
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return nil, body, brokerhttp.BadBody("a message id is missing")
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
		return nil, body, brokerhttp.BadBody("a message id is missing")
	}
	if len(list) > limit {
		return nil, body, errs.Newf(errs.TooLarge, "%w: %d message ids, the limit is %d", messaging.ErrBatch,
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

// flush flushes the response and returns whether that failed. A wrapper without
// FlushError is unwrapped, because its Flush would hide the error.
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
