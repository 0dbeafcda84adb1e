package client

import (
	"cmp"
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

// Tail reads a topic's messages from a position as they arrive, without affecting
// subscriptions. It ends like Messages. When the connection breaks it continues after the last
// message, so that no message is missing. On a topic with partitions, messages may then be
// reordered, but no message is returned twice.
func (t *Topic) Tail(ctx context.Context, from Position) iter.Seq2[*Received, error] {
	return t.tail(ctx, &tail{from: from})
}

// TailFilter is Tail of the messages that an expression selects, such as
// `payload.total > 100 && key.startsWith("k")` (docs/spec/messages.md#expressions). onProgress, unless it
// is nil, is called about every second while the server reads messages.
func (t *Topic) TailFilter(ctx context.Context, from Position, filter string,
	onProgress func(FilterProgress),
) iter.Seq2[*Received, error] {
	return t.tail(ctx, &tail{from: from, filter: filter, onProgress: onProgress})
}

// FilterProgress is how many messages a filter has been evaluated for.
type FilterProgress struct {
	Scanned int64  // messages that were read
	Matched int64  // messages that the expression selects
	Failed  int64  // messages for which the expression failed
	Failure string // the first failure
}

// plus returns the sum of two counts.
func (p FilterProgress) plus(more FilterProgress) FilterProgress {
	return FilterProgress{
		Scanned: p.Scanned + more.Scanned, Matched: p.Matched + more.Matched, Failed: p.Failed + more.Failed,
		Failure: cmp.Or(p.Failure, more.Failure),
	}
}

// tail reads messages with a tail that has not begun.
func (t *Topic) tail(ctx context.Context, tail *tail) iter.Seq2[*Received, error] {
	return func(yield func(*Received, error) bool) {
		if t.err != nil {
			yield(nil, t.err)
			return
		}
		tail.t, tail.lastEntries = t, make(map[[2]int64]int64)
		for attempt := 1; ctx.Err() == nil; attempt++ {
			before := tail.count
			more, err := tail.connect(ctx, yield)
			switch {
			case !more || ctx.Err() != nil:
				return
			case err != nil && (!tail.connected || !isTemporary(err)):
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

// tail is the state of a Tail.
type tail struct {
	t           *Topic
	from        Position
	filter      string
	onHeartbeat func()               // may be nil
	onProgress  func(FilterProgress) // may be nil
	earlier     FilterProgress       // of earlier connections
	progress    FilterProgress       // of all connections
	connected   bool
	since       time.Time // time of the first connection by the server's clock
	last        string    // id of the last message
	count       int
	lastEntries map[[2]int64]int64 // last entry by ledger and partition
}

// query returns the query with the position of the next connection.
func (t *tail) query() url.Values {
	query := url.Values{"encoding": {"base64"}}
	if t.filter != "" {
		query.Set("filter", t.filter)
	}
	switch {
	case t.last != "":
		query.Set("after", t.last)
	case !t.from.time.IsZero():
		query.Set("since", strconv.FormatInt(max(t.from.time.UnixMilli(), 0), 10))
	case t.from.id != "":
		t.fromID(query)
	case t.from.newest != 0:
		query.Set("last", strconv.Itoa(t.from.newest))
	case t.from.word == "earliest":
		query.Set("from", "earliest")
	case !t.since.IsZero():
		query.Set("since", strconv.FormatInt(t.since.UnixMilli(), 10))
	}
	return query
}

// fromID sets the position of an id. The server only supports positions after an id, so AtID
// uses the id before.
func (t *tail) fromID(query url.Values) {
	id, err := parseID(t.from.id)
	switch {
	case err != nil || t.from.after:
		query.Set("after", t.from.id) // the server reports an invalid id
	case id.entry == 0:
		query.Set("from", "earliest")
	default:
		query.Set("after", fmt.Sprintf("%d:%d:%d:0", id.ledger, id.entry-1, id.partition))
	}
}

// connect reads until the connection breaks. It returns false if the loop has ended.
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
	t.earlier = t.progress
	if !t.connected {
		t.connected = true
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			t.since = at
		}
	}
	// A connection without heartbeats for maxSilence is broken.
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	events := newEvents(response.Body)
	for {
		event, err := events.next()
		if err != nil {
			return true, connectionEnd(err)
		}
		silence.Reset(maxSilence)
		if event.beat && t.onHeartbeat != nil {
			t.onHeartbeat()
		}
		switch event.kind {
		case "error":
			return true, eventError(event.data)
		case "progress":
			if err := t.report(event); err != nil {
				return true, err
			}
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

// maxSilence is longer than three heartbeat intervals of the server.
const maxSilence = 50 * time.Second

// message decodes a message. It returns nil if the message was already returned.
func (t *tail) message(data []byte) (*Received, error) {
	var wire wireReceived
	if err := json.Unmarshal(data, &wire); err != nil {
		return nil, fmt.Errorf("decoding a message event: %w", err)
	}
	received, err := wire.received()
	if err != nil {
		return nil, err
	}
	id, err := parseID(received.StringID)
	if err != nil {
		return nil, fmt.Errorf("decoding a message event: %w", err)
	}
	place := [2]int64{id.ledger, id.partition}
	if last, ok := t.lastEntries[place]; ok && id.entry <= last {
		return nil, nil
	}
	t.lastEntries[place], t.last = id.entry, received.ID
	t.count++
	return &received, nil
}

// report reads a progress event. The next connection continues after the last message that was read.
func (t *tail) report(event event) error {
	var wire FilterProgress
	if err := json.Unmarshal(event.data, &wire); err != nil {
		return fmt.Errorf("decoding a progress event: %w", err)
	}
	t.last, t.progress = cmp.Or(event.id, t.last), t.earlier.plus(wire)
	t.count++
	if t.onProgress != nil {
		t.onProgress(t.progress)
	}
	return nil
}

// connectionEnd returns nil or ErrUnavailable for a connection that was closed or broke, so that Tail
// reconnects.
func connectionEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	if permanentErr, ok := errors.AsType[*permanentError](err); ok {
		return permanentErr.err
	}
	return &unreachable{err}
}

// eventError returns the error of an error event, which ends a stream.
func eventError(data []byte) error {
	var body struct {
		Status int    `json:"status"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return fmt.Errorf("decoding an error event: %w", err)
	}
	return &Error{Status: body.Status, Code: body.Status, Message: body.Reason}
}
