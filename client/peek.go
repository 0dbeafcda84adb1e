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
	if s.err != nil {
		return nil, s.err
	}
	partitions, err := s.t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	if partitions == 0 {
		return s.peek(ctx, s.t, -1, n)
	}
	var all []Received
	for i := range partitions {
		list, err := s.peek(ctx, s.t.partition(i), i, n)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b Received) int { return a.PublishTime.Compare(b.PublishTime) })
	return all, nil
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
