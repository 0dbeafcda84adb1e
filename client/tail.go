package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Tail reads a topic's messages as they come, from a position on, and disturbs no
// subscription. It ends as Messages does. When the line breaks it goes on behind
// the last message, so that none is missing; on a topic with partitions a message
// may then come out of its place, but none comes twice.
func (t *Topic) Tail(ctx context.Context, from Position) iter.Seq2[*Received, error] {
	return t.tail(ctx, from, func() {})
}

// tail is Tail that says when the server has nothing to send for a while.
func (t *Topic) tail(ctx context.Context, from Position, quiet func()) iter.Seq2[*Received, error] {
	return func(yield func(*Received, error) bool) {
		if t.err != nil {
			yield(nil, t.err)
			return
		}
		tail := &tail{t: t, from: from, quiet: quiet, seen: make(map[[2]int64]int64)}
		for attempt := 1; ctx.Err() == nil; attempt++ {
			before := tail.count
			more, err := tail.connect(ctx, yield)
			switch {
			case !more || ctx.Err() != nil:
				return
			case err != nil && (!tail.connected || !passing(err)):
				yield(nil, err)
				return
			case tail.count > before:
				attempt = 0
			}
			timer := time.NewTimer(jitter(max(attempt, 1)))
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
}

// tail is where a Tail has got to.
type tail struct {
	t         *Topic
	from      Position
	quiet     func()
	connected bool
	since     time.Time // of the first connection, by the server's clock
	last      string    // id of the last message
	count     int
	seen      map[[2]int64]int64 // last entry by ledger and partition
}

// query says where the next connection begins.
func (t *tail) query() url.Values {
	query := url.Values{"encoding": {"base64"}}
	switch {
	case t.last != "":
		query.Set("after", t.last)
	case !t.from.time.IsZero():
		query.Set("since", strconv.FormatInt(max(t.from.time.UnixMilli(), 0), 10))
	case t.from.id != "":
		t.fromID(query)
	case t.from.word == "earliest":
		query.Set("from", "earliest")
	case !t.since.IsZero():
		query.Set("since", strconv.FormatInt(t.since.UnixMilli(), 10))
	}
	return query
}

// fromID begins at an id or behind it. The server knows only the second.
func (t *tail) fromID(query url.Values) {
	id, err := parseID(t.from.id)
	switch {
	case err != nil || t.from.after:
		query.Set("after", t.from.id) // the server says what is wrong with it
	case id.entry == 0:
		query.Set("from", "earliest")
	default:
		query.Set("after", fmt.Sprintf("%d:%d:%d:0", id.ledger, id.entry-1, id.partition))
	}
}

// connect reads until the line breaks. It returns false when the loop was left.
func (t *tail) connect(ctx context.Context, yield func(*Received, error) bool) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := t.t.c.Stream(ctx, &Request{
		Method: http.MethodGet, Path: t.t.path(messageRoot, "/tail"), Query: t.query(),
		Header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	if !t.connected {
		t.connected = true
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			t.since = at
		}
	}
	// A line without a heartbeat for so long is dead.
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	events := newEvents(response.Body)
	for {
		event, err := events.next()
		if err != nil {
			return true, ended(err)
		}
		silence.Reset(maxSilence)
		if event.beat {
			t.quiet()
		}
		switch event.kind {
		case "error":
			return true, eventError(event.data)
		case "message":
			received, err := t.message(event.data)
			if err != nil {
				return true, err
			}
			if received != nil && !yield(received, nil) {
				return false, nil
			}
		}
	}
}

// maxSilence is longer than three of the server's heartbeats.
const maxSilence = 50 * time.Second

// message reads a message, nil when it was read before.
func (t *tail) message(data []byte) (*Received, error) {
	var wire wireReceived
	if err := json.Unmarshal(data, &wire); err != nil {
		return nil, fmt.Errorf("the server's event is not a message: %w", err)
	}
	received, err := wire.received()
	if err != nil {
		return nil, err
	}
	id, err := parseID(received.StringID)
	if err != nil {
		return nil, fmt.Errorf("the server's event: %w", err)
	}
	place := [2]int64{id.ledger, id.partition}
	if last, ok := t.seen[place]; ok && id.entry <= last {
		return nil, nil
	}
	t.seen[place], t.last = id.entry, received.ID
	t.count++
	return &received, nil
}

// ended is a line that broke or was ended by the server: worth another one.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	var never *permanentError
	if errors.As(err, &never) {
		return never.err
	}
	return &unreachable{err}
}

// eventError is the error that ends a stream.
func eventError(data []byte) error {
	var body struct {
		Status int    `json:"status"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return fmt.Errorf("the server's error event cannot be read: %w", err)
	}
	return &Error{Status: body.Status, Code: body.Status, Message: body.Reason}
}
