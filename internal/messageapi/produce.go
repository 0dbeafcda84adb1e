package messageapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"freshet/internal/brokerhttp"
	"freshet/internal/errs"
	"freshet/internal/messaging"
	"freshet/internal/names"
	"freshet/internal/web"
	"freshet/internal/workpool"
)

// produce is POST …/{topic}/message.
func (c *call) produce() error {
	var m messaging.Message
	if err := readHeaders(c.R.Header, &m); err != nil {
		return err
	}
	payload, err := c.Body(int64(c.Broker().Limits().MessageBytes))
	if err != nil {
		return err
	}
	m.Payload = payload
	ctx := c.R.Context()
	if len(payload) > workpool.SmallBytes {
		ctx = c.Working()
	}
	produced, err := c.Broker().Produce(ctx, c.Topic, &m)
	if err != nil {
		return err
	}
	c.created(&produced)
	return nil
}

// created answers with the id of a new message (docs/spec/messages.md#m3).
func (c *call) created(p *messaging.Produced) {
	var buf [192]byte
	f := fields{text: append(buf[:0], '"')}
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
	c.Began = true
	c.W.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(c.W, body) // the message is stored whether or not the client hears of it
}

// wantsText reports whether a client prefers text/plain to JSON. Accept is a
// hint here and never a reason to refuse.
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

// batchList is decoded one by one, so that a body full of nothing does not
// become a hundred times its size in memory.
type batchList []batchMessage

// maxBatch is more than a broker may be configured to take.
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
			return errs.Newf(errs.TooLarge, "%w: it has more than %d messages", messaging.ErrBatch, maxBatch)
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

// batchMessage is one message of it.
type batchMessage struct {
	Payload            rawPayload        `json:"payload"`
	Encoding           encoding          `json:"encoding"`
	Key                string            `json:"key"`
	Properties         map[string]string `json:"properties"`
	EventTime          int64             `json:"eventTime"`
	SequenceID         *uint64           `json:"sequenceId"`
	SchemaVersion      *int64            `json:"schemaVersion"`
	DeliverAt          int64             `json:"deliverAt"`
	DeliverAfterMillis *int64            `json:"deliverAfterMillis"`
	IdempotencyKey     string            `json:"idempotencyKey"`
}

// batchResult is what became of it.
type batchResult struct {
	MessageID       string `json:"messageId,omitempty"`
	MessageStringID string `json:"messageStringId,omitempty"`
	SchemaVersion   *int64 `json:"schemaVersion,omitempty"`
	Duplicate       bool   `json:"duplicate,omitempty"`
	Status          int    `json:"status"`
	Reason          string `json:"reason,omitempty"`
}

// produceBatch is POST …/{topic}/messages, an extension. Its answer is 201
// when every message is stored, and else 207 with a status for each.
func (c *call) produceBatch() error {
	limits := c.Broker().Limits()
	var body batchBody
	// base64 makes payloads a third larger.
	limit := int64(limits.BatchBytes)*4/3 + int64(limits.Batch*limits.MetadataBytes)/4 + maxSmallBody
	if ok, err := c.Decode(&body, limit); err != nil {
		return err
	} else if !ok || len(body.Messages) == 0 {
		return brokerhttp.BadBody("it must be an object with messages")
	}
	msgs := make([]messaging.Message, len(body.Messages))
	for i := range body.Messages {
		if err := body.Messages[i].fill(&msgs[i], &body); err != nil {
			return brokerhttp.BadBody("message %d: %w", i, err)
		}
	}
	results, err := c.Broker().ProduceBatch(c.Working(), c.Topic, msgs)
	if err != nil {
		return err
	}
	return c.batchProduced(results)
}

func (m *batchMessage) fill(out *messaging.Message, body *batchBody) error {
	enc := m.Encoding
	if enc == "" {
		enc = body.Encoding
	}
	payload, err := enc.decode(m.Payload)
	if err != nil {
		return err
	}
	if len(m.IdempotencyKey) > maxIdempotencyKey {
		return brokerhttp.BadBody("idempotencyKey must be at most %d bytes long", maxIdempotencyKey)
	}
	*out = messaging.Message{
		Payload: payload, Key: m.Key, EventTime: m.EventTime, SchemaVersion: messaging.NoSchema,
		Producer: body.ProducerName, DeliverAt: m.DeliverAt, IdempotencyKey: m.IdempotencyKey,
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
	for k, v := range m.Properties {
		out.Properties = append(out.Properties, messaging.Property{Key: k, Value: v})
	}
	return finishHeaders(nil, out, after)
}

func (c *call) batchProduced(results []messaging.Result) error {
	out := struct {
		Results []batchResult `json:"results"`
	}{make([]batchResult, len(results))}
	code := http.StatusCreated
	for i := range results {
		r, o := &results[i], &out.Results[i]
		if r.Err != nil {
			code = http.StatusMultiStatus
			o.Status = brokerhttp.StatusOf(r.Err, brokerhttp.MessageCalls)
			o.Reason = brokerhttp.PublicReason(r.Err, o.Status)
			if o.Status == http.StatusInternalServerError {
				web.RecordOf(c.R.Context()).Fail(r.Err)
			}
			continue
		}
		o.Status, o.Duplicate = http.StatusCreated, r.Duplicate
		o.MessageID, o.MessageStringID = idForms(r.ID)
		if r.SchemaVersion >= 0 {
			o.SchemaVersion = &r.SchemaVersion
		}
	}
	return web.WriteJSON(c.W, code, contentJSON, out)
}

func idForms(id names.MessageID) (encoded, text string) { return id.Base64(), id.String() }
