package client

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// Limits of one call (docs/spec/messages.md#limits).
const (
	// MaxBatch is the maximum number of messages, or ids, in one call.
	MaxBatch = 1000
	// maxBatchBytes is the maximum payload of one batch.
	maxBatchBytes = 8 << 20
)

// Produce sends one message and returns when it is durable.
//
// A call without a response is retried with the message's idempotency key, so that the message
// is stored once. After an error it may be stored or not. To retry later without a duplicate,
// set an IdempotencyKey and use the same key again.
func (t *Topic) Produce(ctx context.Context, m Message) (Produced, error) {
	if m.IdempotencyKey == "" {
		m.IdempotencyKey = rand.Text()
	}
	return t.produce(ctx, "", &m)
}

// produce sends one message. It is retried if it has an idempotency key.
func (t *Topic) produce(ctx context.Context, producer string, m *Message) (Produced, error) {
	if t.err != nil {
		return Produced{}, t.err
	}
	header, err := m.header()
	if err != nil {
		return Produced{}, err
	}
	if producer != "" {
		header.Set("X-Msg-Producer-Name", producer)
	}
	response, err := t.c.Do(ctx, &Request{
		Method: http.MethodPost, Path: t.path(messageRoot, "/message"), Header: header, Body: m.Value,
		Idempotent: m.IdempotencyKey != "",
	})
	if err != nil {
		return Produced{}, err
	}
	produced := Produced{
		ID: response.Header.Get("X-Msg-Message-Id"), StringID: response.Header.Get("X-Msg-Message-String-Id"),
		Duplicate: response.Header.Get("X-Msg-Duplicate") == "true",
	}
	if version, err := strconv.ParseInt(response.Header.Get("X-Msg-Long-Schema-Version"), 10, 64); err == nil {
		produced.SchemaVersion = &version
	}
	return produced, nil
}

// header returns the message's metadata for a call with the payload as its body.
func (m *Message) header() (http.Header, error) {
	h := http.Header{"Content-Type": {"application/octet-stream"}}
	if m.IdempotencyKey != "" {
		h.Set("Idempotency-Key", m.IdempotencyKey)
	}
	w := m.wire()
	set := func(name string, given bool, value string) {
		if given {
			h.Set("X-Msg-"+name, value)
		}
	}
	number := func(name string, n *int64) {
		if n != nil {
			h.Set("X-Msg-"+name, strconv.FormatInt(*n, 10))
		}
	}
	if w.Key != nil {
		set("Partition-Key", true, *w.Key)
		set("Partition-Key-Encoding", w.KeyEncoding != "", w.KeyEncoding)
	}
	set("Null-Value", m.NullValue, "true")
	set("Event-Time", w.EventTime != 0, strconv.FormatInt(w.EventTime, 10))
	set("Deliver-At", w.DeliverAt != 0, strconv.FormatInt(w.DeliverAt, 10))
	number("Deliver-After-Ms", w.DeliverAfterMillis)
	number("Long-Schema-Version", m.SchemaVersion)
	if m.Sequence != nil {
		set("Sequence-Id", true, strconv.FormatUint(*m.Sequence, 10))
	}
	if m.Headers != nil {
		text, err := json.Marshal(wireHeaders(m.Headers))
		if err != nil {
			return nil, fmt.Errorf("encoding the headers of the message: %w", err)
		}
		set("Record-Headers", true, base64.StdEncoding.EncodeToString(text))
	} else if len(m.Properties) > 0 {
		text, err := json.Marshal(m.Properties)
		if err != nil {
			return nil, fmt.Errorf("encoding the properties of the message: %w", err)
		}
		set("Properties", true, base64.StdEncoding.EncodeToString(text))
	}
	return h, nil
}

// Result is the result of one message of a batch: Produced, or an error.
type Result struct {
	Produced
	Err error
}

// ProduceBatch sends up to MaxBatch messages, with at most 8 MiB of payload, in one call. The
// messages of one partition keep their order and are stored atomically. It returns one result
// for each message, unless the whole call failed. It retries like Produce. A Producer creates
// batches automatically.
func (t *Topic) ProduceBatch(ctx context.Context, messages []Message) ([]Result, error) {
	messages = slices.Clone(messages)
	for i := range messages {
		if messages[i].IdempotencyKey == "" {
			messages[i].IdempotencyKey = rand.Text()
		}
	}
	return t.produceBatch(ctx, "", messages, true)
}

func (t *Topic) produceBatch(ctx context.Context, producer string, messages []Message,
	repeatable bool,
) ([]Result, error) {
	if t.err != nil {
		return nil, t.err
	}
	if len(messages) == 0 {
		return nil, nil
	}
	body := struct {
		Producer string        `json:"producerName,omitempty"`
		Messages []wireMessage `json:"messages"`
	}{Producer: producer, Messages: make([]wireMessage, len(messages))}
	for i := range messages {
		body.Messages[i] = messages[i].wire()
	}
	var result struct {
		Results []struct {
			MessageID       string `json:"messageId"`
			MessageStringID string `json:"messageStringId"`
			SchemaVersion   *int64 `json:"schemaVersion"`
			Duplicate       bool   `json:"duplicate"`
			Status          int    `json:"status"`
			Reason          string `json:"reason"`
		} `json:"results"`
	}
	request := &Request{Method: http.MethodPost, Path: t.path(messageRoot, "/messages"), Idempotent: repeatable}
	if err := t.c.callJSON(ctx, request, body, &result); err != nil {
		return nil, err
	}
	if len(result.Results) != len(messages) {
		return nil, errors.New("server response to a batch does not have one result for each message")
	}
	results := make([]Result, len(messages))
	for i, r := range result.Results {
		if r.Status >= http.StatusMultipleChoices {
			results[i].Err = &Error{Status: r.Status, Code: r.Status, Message: r.Reason}
			continue
		}
		results[i].Produced = Produced{
			ID: r.MessageID, StringID: r.MessageStringID, Duplicate: r.Duplicate,
			SchemaVersion: r.SchemaVersion,
		}
	}
	return results, nil
}
