package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// SearchOptions configures Search. The zero value searches all stored messages.
type SearchOptions struct {
	From, To   time.Time // publish times; From is inclusive, To is not
	Cursor     string    // of a SearchProgress; continues there, and replaces From
	Partitions []int     // nil means all
	Limit      int       // ends after this many matches; 0 means no limit
	// OnProgress, if set, is called several times per second.
	OnProgress func(SearchProgress)
}

// SearchProgress is how far a search is.
type SearchProgress struct {
	Scanned int64  // messages that were read
	Matched int64  // messages that the expression selects
	Failed  int64  // messages for which the expression failed
	Failure string // the first failure
	Total   int64  // messages in the range of the search
	Cursor  string // continues the search after the messages that were read
}

// Search returns the stored messages that an expression selects, such as
// `payload.total > 100 && key.startsWith("k")` (docs/spec/messages.md#expressions). It reads the
// messages that the topic has at the start, and does not affect subscriptions. When the connection
// breaks it continues; no message is missing or returned twice.
func (t *Topic) Search(ctx context.Context, filter string, o SearchOptions) iter.Seq2[*Received, error] {
	return func(yield func(*Received, error) bool) {
		if t.err != nil {
			yield(nil, t.err)
			return
		}
		s := &search{t: t, filter: filter, opts: o, yield: yield}
		for attempt := 1; ctx.Err() == nil; attempt++ {
			before := s.progress.Scanned
			more, err := s.connect(ctx)
			switch {
			case !more || ctx.Err() != nil:
				return
			case err != nil && (!s.connected || !isTemporary(err)):
				yield(nil, err)
				return
			case s.progress.Scanned > before:
				attempt = 0
			}
			if err == nil && attempt == 0 {
				continue // the time of one call is over
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

// search is the state of a Search.
type search struct {
	t         *Topic
	filter    string
	opts      SearchOptions
	yield     func(*Received, error) bool
	connected bool
	earlier   SearchProgress // the sum of earlier connections
	progress  SearchProgress // of all connections
	returned  int
	found     []*Received // messages since the last progress
}

// maxSearchLimit is the server's limit of matches in one call.
const maxSearchLimit = 10_000

func (s *search) query() url.Values {
	query := url.Values{"filter": {s.filter}, "encoding": {"base64"}, "limit": {strconv.Itoa(maxSearchLimit)}}
	if s.opts.Limit > 0 {
		query.Set("limit", strconv.Itoa(min(s.opts.Limit-s.returned, maxSearchLimit)))
	}
	if cursor := cmp.Or(s.progress.Cursor, s.opts.Cursor); cursor != "" {
		query.Set("cursor", cursor)
	} else if !s.opts.From.IsZero() {
		query.Set("from", strconv.FormatInt(max(s.opts.From.UnixMilli(), 0), 10))
	}
	if !s.opts.To.IsZero() {
		query.Set("to", strconv.FormatInt(max(s.opts.To.UnixMilli(), 0), 10))
	}
	if len(s.opts.Partitions) > 0 {
		list := make([]string, len(s.opts.Partitions))
		for i, partition := range s.opts.Partitions {
			list[i] = strconv.Itoa(partition)
		}
		query.Set("partitions", strings.Join(list, ","))
	}
	return query
}

// connect makes one call. It returns false if the search has ended.
func (s *search) connect(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := s.t.c.Stream(ctx, &Request{
		Method: http.MethodGet, Path: s.t.path(messageRoot, "/search"), Query: s.query(),
		Header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	s.connected, s.earlier, s.found = true, s.progress, nil
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	events := newEvents(response.Body)
	for {
		event, err := events.next()
		if err != nil {
			return true, connectionEnd(err)
		}
		silence.Reset(maxSilence)
		switch event.kind {
		case "error":
			return true, eventError(event.data)
		case "message":
			if err := s.message(event.data); err != nil {
				return true, err
			}
		case "progress", "end":
			more, err := s.report(event.data)
			if err != nil || !more || event.kind == "end" {
				return more, err
			}
		}
	}
}

func (s *search) message(data []byte) error {
	var wire wireReceived
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("decoding a message event: %w", err)
	}
	received, err := wire.received()
	s.found = append(s.found, &received)
	return err
}

// report returns the messages that came before a progress event. They are complete: if the connection
// breaks, the search continues after them.
func (s *search) report(data []byte) (more bool, err error) {
	var wire struct {
		Scanned, Matched, Failed, Total int64
		Failure, Cursor, Reason         string
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return true, fmt.Errorf("decoding a progress event: %w", err)
	}
	s.progress = SearchProgress{
		Scanned: s.earlier.Scanned + wire.Scanned, Matched: s.earlier.Matched + wire.Matched,
		Failed: s.earlier.Failed + wire.Failed, Failure: cmp.Or(s.earlier.Failure, wire.Failure),
		Total: s.earlier.Scanned + wire.Total, Cursor: wire.Cursor,
	}
	for _, received := range s.found {
		s.returned++
		if !s.yield(received, nil) {
			return false, nil
		}
	}
	s.found = nil
	if s.opts.OnProgress != nil {
		s.opts.OnProgress(s.progress)
	}
	return wire.Reason != "end" && (s.opts.Limit == 0 || s.returned < s.opts.Limit), nil
}
