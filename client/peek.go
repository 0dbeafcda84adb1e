package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Peek returns up to n messages of each partition that are not acknowledged, without leasing
// them. They are in order of publication.
func (s *Subscription) Peek(ctx context.Context, n int) ([]Received, error) {
	return s.peekEach(ctx, func(t *Topic, partition int) ([]Received, error) { return s.peek(ctx, t, partition, n) })
}

// PeekFilter is Peek of the messages that an expression selects, such as
// `payload.total > 100 && key.startsWith("k")` (docs/spec/messages.md#expressions). It also returns how many
// messages the server has read.
func (s *Subscription) PeekFilter(ctx context.Context, n int, filter string) ([]Received, FilterProgress, error) {
	var progress FilterProgress
	list, err := s.peekEach(ctx, func(t *Topic, partition int) ([]Received, error) {
		return s.peekFilter(ctx, t, partition, n, filter, &progress)
	})
	progress.Matched = int64(len(list))
	return list, progress, err
}

// peekEach peeks at each partition, and returns the messages in the order of their publication.
func (s *Subscription) peekEach(ctx context.Context, peek func(*Topic, int) ([]Received, error)) ([]Received, error) {
	if s.err != nil {
		return nil, s.err
	}
	partitions, err := s.t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	if partitions == 0 {
		return peek(s.t, -1)
	}
	var all []Received
	for i := range partitions {
		list, err := peek(s.t.partition(i), i)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b Received) int { return a.PublishTime.Compare(b.PublishTime) })
	return all, nil
}

// peekFilter peeks at the messages of one partition that an expression selects. A call of the server reads a
// bounded number of messages, so that one match may need several calls.
func (s *Subscription) peekFilter(ctx context.Context, t *Topic, partition, n int, filter string,
	progress *FilterProgress,
) (list []Received, err error) {
	query := url.Values{"filter": {filter}}
	for len(list) < n {
		response, err := t.c.Do(ctx, &Request{
			Method: http.MethodGet, Query: query,
			Path: t.admin("/subscription/" + url.PathEscape(s.name) + "/position/1"),
		})
		if err != nil {
			return nil, err
		}
		*progress = progress.plus(filterHeaders(response.Header))
		last := response.Header.Get("X-Pulsar-Last-Message-Id")
		query.Set("after", last)
		if response.Status != http.StatusNoContent {
			received, err := parsePeeked(response, partition)
			if err != nil {
				return nil, err
			}
			list = append(list, received)
		}
		if last == "" {
			return list, nil // no more messages
		}
	}
	return list, nil
}

// filterHeaders returns the progress in the headers of a response.
func filterHeaders(h http.Header) (p FilterProgress) {
	// A header that is missing or not valid counts as zero.
	p.Scanned, _ = strconv.ParseInt(h.Get("X-Pulsar-Filter-Scanned"), 10, 64)
	p.Failed, _ = strconv.ParseInt(h.Get("X-Pulsar-Filter-Failed"), 10, 64)
	p.Failure, _ = strconv.Unquote(h.Get("X-Pulsar-Filter-Failure"))
	return p
}

// partition returns one partition of the topic.
func (t *Topic) partition(i int) *Topic {
	one := *t
	one.name += "-partition-" + strconv.Itoa(i)
	return &one
}

func (s *Subscription) peek(ctx context.Context, t *Topic, partition, n int) ([]Received, error) {
	var list []Received
	for i := 1; i <= n; i++ {
		path := t.admin("/subscription/" + url.PathEscape(s.name) + "/position/" + strconv.Itoa(i))
		response, err := t.c.Do(ctx, &Request{Method: http.MethodGet, Path: path})
		if errors.Is(err, ErrNotFound) {
			if i > 1 {
				return list, nil // no more messages
			}
			// 404 means no message or no subscription. Properties distinguishes them.
			_, missing := s.Properties(ctx)
			return nil, missing
		}
		if err != nil {
			return nil, err
		}
		received, err := parsePeeked(response, partition)
		if err != nil {
			return nil, err
		}
		list = append(list, received)
	}
	return list, nil
}

// parsePeeked reads a message whose metadata is in the headers of Pulsar.
func parsePeeked(response *Response, partition int) (Received, error) {
	get := func(name string) string { return response.Header.Get("X-Pulsar-" + name) }
	r := Received{
		Message: Message{
			Value: response.Body, NullValue: get("Null-Value") == "true", Properties: map[string]string{},
		},
		StringID: get("Message-Id") + ":" + strconv.Itoa(partition) + ":0", Producer: get("Producer-Name"),
	}
	r.ID = r.StringID
	var err error
	if r.PublishTime, err = time.Parse(time.RFC3339Nano, get("Publish-Time")); err != nil {
		return r, fmt.Errorf("parsing the publish time of message %s: %w", r.StringID, err)
	}
	if at, err := time.Parse(time.RFC3339Nano, get("Event-Time")); err == nil {
		r.EventTime = at
	}
	if sequence, err := strconv.ParseUint(get("Sequence-Id"), 10, 64); err == nil {
		r.Sequence = &sequence
	}
	if id, err := strconv.Atoi(get("Schema-Id")); err == nil {
		r.SchemaID = id
	}
	for name, values := range response.Header {
		if property, ok := strings.CutPrefix(name, "X-Pulsar-Property-"); ok && len(values) > 0 {
			r.Properties[strings.ToLower(property)] = values[0]
		}
	}
	return r, r.setExactMetadata(get)
}

// setExactMetadata sets the key, properties and headers from the response headers that contain
// them exactly, if these exist.
func (r *Received) setExactMetadata(get func(string) string) error {
	r.Key = get("Partition-Key")
	if get("Partition-Key-Encoding") == "base64" {
		key, err := base64.StdEncoding.DecodeString(r.Key)
		if err != nil {
			return fmt.Errorf("decoding the key of message %s: %w", r.StringID, err)
		}
		r.Key, r.EmptyKey = string(key), len(key) == 0
	}
	if text, err := base64.StdEncoding.DecodeString(get("Properties")); err == nil && len(text) > 0 {
		r.Properties = nil // their names are in lower case
		if err := json.Unmarshal(text, &r.Properties); err != nil {
			return fmt.Errorf("decoding the properties of message %s: %w", r.StringID, err)
		}
	}
	if text, err := base64.StdEncoding.DecodeString(get("Record-Headers")); err == nil && len(text) > 0 {
		var headers wireHeaders
		if err := json.Unmarshal(text, &headers); err != nil {
			return fmt.Errorf("decoding the headers of message %s: %w", r.StringID, err)
		}
		r.Headers = headers
	}
	return nil
}
