package messageapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// produce is POST …/{topic}/message.
func (c *call) produce() error {
	var m messaging.Message
	if err := readHeaders(c.R.Header, &m); err != nil {
		return err
	}
	payload, err := c.Body(int64(c.Cluster.Limits.MessageBytes))
	if err != nil {
		return err
	}
	if m.NullPayload && len(payload) > 0 {
		return brokerhttp.BadBody("must be empty with %s: true", metadataHeaders.NullValue)
	}
	m.Payload = payload
	ctx := c.R.Context()
	if len(payload) > workpool.SmallBytes {
		ctx = c.WorkContext()
	}
	produced, err := c.Cluster.Producer.Produce(ctx, c.Topic, &m)
	if err != nil {
		return err
	}
	c.created(&produced)
	return nil
}

// created responds with the id of a new message (docs/spec/messages.md#m3).
func (c *call) created(p *messaging.Produced) {
	var buf [192]byte
	f := headerFields{text: append(buf[:0], '"')}
	f.end("")
	f.text = p.ID.AppendText(f.text)
	f.end(headerStringID)
	f.text = append(f.text, '"')
	f.end("")
	from, to := 0, len(f.text) // the id as a JSON string
	h := c.W.Header()
	h["Content-Type"] = valueJSON
	if wantsText(c.R.Header["Accept"]) {
		h["Content-Type"] = valueText
		from, to = from+1, to-1
	}
	if p.Duplicate {
		h[headerDuplicate] = valueTrue
	}
	f.text = p.ID.AppendBase64(f.text)
	f.end(headerMessageID)
	f.schema(p.SchemaVersion)
	f.number("Content-Length", int64(to-from))
	body := f.write(h)[from:to]
	c.Started = true
	c.W.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(c.W, body) // the message is stored, even if the response is lost
}

// wantsText reports whether a client prefers text/plain to JSON. Accept is only a hint
// here: no request is rejected for it.
func wantsText(accept []string) bool {
	if len(accept) == 0 {
		return false
	}
	if len(accept) == 1 {
		switch accept[0] {
		case contentJSON, "*/*", "":
			return false
		case "text/plain":
			return true
		}
	}
	offer, ok := web.Accepts(accept, contentJSON, "text/plain")
	return ok && offer == "text/plain"
}

// batchBody is the body of a batch produce.
type batchBody struct {
	ProducerName string    `json:"producerName"`
	Encoding     encoding  `json:"encoding"`
	Messages     batchList `json:"messages"`
}

// batchList is decoded one message at a time, so that a body with many empty messages
// does not need a hundred times its size in memory.
type batchList []batchMessage

// maxBatch is more than the highest limit that can be configured for a broker.
const maxBatch = 10_000

// UnmarshalJSON implements json.Unmarshaler.
func (l *batchList) UnmarshalJSON(b []byte) error {
	in := json.NewDecoder(bytes.NewReader(b))
	if start, err := in.Token(); err != nil {
		return err
	} else if start != json.Delim('[') {
		return errors.New("messages must be an array")
	}
	for in.More() {
		if len(*l) == maxBatch {
			return errs.Newf(errs.TooLarge, "%w: more than %d messages", messaging.ErrBatch, maxBatch)
		}
		var m batchMessage
		if err := in.Decode(&m); err != nil {
			return err
		}
		*l = append(*l, m)
	}
	_, err := in.Token()
	return err
}

// batchMessage is one message of a batch produce.
type batchMessage struct {
	Payload            payloadJSON              `json:"payload"`
	Encoding           encoding                 `json:"encoding"`
	NullValue          bool                     `json:"nullValue"`
	Key                *string                  `json:"key"`
	KeyEncoding        string                   `json:"keyEncoding"`
	Properties         map[string]string        `json:"properties"`
	Headers            brokerhttp.RecordHeaders `json:"headers"`
	EventTime          int64                    `json:"eventTime"`
	SequenceID         *uint64                  `json:"sequenceId"`
	SchemaVersion      *int64                   `json:"schemaVersion"`
	DeliverAt          int64                    `json:"deliverAt"`
	DeliverAfterMillis *int64                   `json:"deliverAfterMillis"`
	IdempotencyKey     string                   `json:"idempotencyKey"`
}

// batchFailure is the result of a message that was not stored.
type batchFailure struct {
	Status int    `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// produceBatch is POST …/{topic}/messages, an extension. It responds with 201 if every
// message is stored, otherwise with 207 and a status for each message.
func (c *call) produceBatch() error {
	limits := c.Cluster.Limits
	buffer := getBatchBuffers()
	body := batchBody{Messages: buffer.rows}
	// base64 makes payloads a third larger.
	limit := int64(limits.BatchBytes)*4/3 + int64(limits.MaxBatch*limits.MetadataBytes)/4 + maxSmallBody
	b, err := c.Body(limit)
	if err != nil {
		return err
	}
	if !scanBatch(b, &body) {
		body = batchBody{}
		if _, err := brokerhttp.DecodeJSON(b, &body); err != nil {
			return err
		}
	}
	msgs, err := body.unpack(buffer.messages)
	if err != nil {
		return err
	}
	results, err := c.Cluster.Producer.ProduceBatch(c.WorkContext(), c.Topic, msgs)
	if err != nil {
		return err // the broker may still use the messages, so they are not reused
	}
	buffer.release(body.Messages, msgs)
	return c.batchProduced(results)
}

// unpack converts the body to messages. It uses room if that is large enough. The
// payloads share one allocation.
func (b *batchBody) unpack(buffer []messaging.Message) ([]messaging.Message, error) {
	if len(b.Messages) == 0 {
		return nil, brokerhttp.BadBody("expected an object with messages")
	}
	size := 0
	for i := range b.Messages {
		size += base64.StdEncoding.DecodedLen(len(b.Messages[i].Payload))
	}
	payloads := make([]byte, size)
	msgs := slices.Grow(buffer[:0], len(b.Messages))[:len(b.Messages)]
	for i := range b.Messages {
		if err := b.Messages[i].fill(&msgs[i], b, &payloads); err != nil {
			return nil, brokerhttp.BadBody("message %d: %w", i, err)
		}
	}
	return msgs, nil
}

func (m *batchMessage) fill(out *messaging.Message, body *batchBody, buffer *[]byte) error {
	enc := m.Encoding
	if enc == "" {
		enc = body.Encoding
	}
	payload, err := m.payload(enc, buffer)
	if err != nil {
		return err
	}
	if len(m.IdempotencyKey) > maxIdempotencyKey {
		return brokerhttp.BadBody("idempotencyKey must be at most %d bytes long", maxIdempotencyKey)
	}
	*out = messaging.Message{
		Payload: payload, NullPayload: m.NullValue, EventTime: m.EventTime, SchemaVersion: messaging.NoSchema,
		Producer: body.ProducerName, DeliverAt: m.DeliverAt, IdempotencyKey: m.IdempotencyKey,
	}
	if m.Key != nil {
		out.Key = *m.Key
	}
	if m.KeyEncoding != "" {
		if err := decodeKey(out, m.KeyEncoding, m.Key != nil); err != nil {
			return brokerhttp.BadBody("keyEncoding must be %w", err)
		}
	}
	if m.SequenceID != nil {
		out.Sequence, out.HasSequence = *m.SequenceID, true
	}
	if m.SchemaVersion != nil {
		if *m.SchemaVersion < 0 {
			return brokerhttp.BadBody("schemaVersion must not be negative")
		}
		out.SchemaVersion = *m.SchemaVersion
	}
	after := int64(-1)
	if m.DeliverAfterMillis != nil {
		if after = *m.DeliverAfterMillis; after < 0 {
			return brokerhttp.BadBody("deliverAfterMillis must not be negative")
		}
	}
	if m.Headers != nil {
		out.Properties = m.Headers
		return finishHeaders(nil, out, after, true)
	}
	for k, v := range m.Properties {
		out.Properties = append(out.Properties, messaging.Property{Key: k, Value: v})
	}
	return finishHeaders(nil, out, after, false)
}

// payload decodes the payload; a null message must not have one.
func (m *batchMessage) payload(enc encoding, buffer *[]byte) ([]byte, error) {
	if !m.NullValue {
		if enc == "" || enc == encodeBase64 {
			if payload, ok := decodeInto(buffer, m.Payload); ok {
				return payload, nil
			}
		}
		return enc.decode(m.Payload)
	}
	switch string(m.Payload) {
	case "", "null", `""`:
		return nil, nil
	}
	return nil, brokerhttp.BadBody("payload must be absent with nullValue")
}

// batchProduced responds with the result of each message.
func (c *call) batchProduced(results []messaging.ProduceResult) error {
	code := http.StatusCreated
	b := append(make([]byte, 0, 32+96*len(results)), `{"results":[`...)
	for i := range results {
		if i > 0 {
			b = append(b, ',')
		}
		r := &results[i]
		if r.Err == nil {
			b = appendProduced(b, r)
			continue
		}
		code = http.StatusMultiStatus
		failed := batchFailure{Status: brokerhttp.MessageCalls.Status(r.Err)}
		failed.Reason = brokerhttp.PublicReason(r.Err, failed.Status)
		if failed.Status == http.StatusInternalServerError {
			web.RecordOf(c.R.Context()).Fail(r.Err)
		}
		text, err := web.MarshalJSON(failed)
		if err != nil {
			return err
		}
		b = append(b, text...)
	}
	b = append(b, "]}"...)
	c.Started = true
	web.WriteBody(c.W, code, contentJSON, b)
	return nil
}

// appendProduced appends the JSON of a stored message; its ids need no escapes.
func appendProduced(b []byte, r *messaging.ProduceResult) []byte {
	b = append(b, `{"messageId":"`...)
	b = r.ID.AppendBase64(b)
	b = append(b, `","messageStringId":"`...)
	b = r.ID.AppendText(b)
	b = append(b, '"')
	if r.SchemaVersion >= 0 {
		b = strconv.AppendInt(append(b, `,"schemaVersion":`...), r.SchemaVersion, 10)
	}
	if r.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	b = strconv.AppendInt(append(b, `,"status":`...), http.StatusCreated, 10)
	return append(b, '}')
}
