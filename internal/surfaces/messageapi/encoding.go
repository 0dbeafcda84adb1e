package messageapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// encoding is the form of a payload in JSON.
type encoding string

const (
	encodeBase64 encoding = "base64" // the default
	encodeText   encoding = "text"   // the payload as a UTF-8 string
	encodeJSON   encoding = "json"   // the payload as a JSON value
)

// payloadJSON is the JSON of a payload in a request.
type payloadJSON = json.RawMessage

func (e encoding) decode(raw payloadJSON) ([]byte, error) {
	switch e {
	case "", encodeBase64, encodeText:
		if len(raw) == 0 || string(raw) == "null" {
			return nil, nil
		}
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, brokerhttp.BadBody("payload must be a string")
		}
		if e == encodeText {
			return []byte(s), nil
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil, brokerhttp.BadBody("payload is not base64; for plain text set \"encoding\": \"text\"")
		}
		return b, nil
	case encodeJSON:
		if len(raw) == 0 {
			return nil, brokerhttp.BadBody("payload is missing")
		}
		if !json.Valid(raw) {
			return nil, brokerhttp.BadBody("payload is not valid JSON")
		}
		return raw, nil
	}
	return nil, brokerhttp.BadBody("encoding %q is unknown; use base64, text or json", e)
}

func parseEncoding(s string) (encoding, error) {
	switch e := encoding(s); e {
	case "":
		return encodeBase64, nil
	case encodeBase64, encodeText, encodeJSON:
		return e, nil
	}
	return "", brokerhttp.BadBody("encoding %q is unknown; use base64, text or json", s)
}

// receivedMessage is a message in a JSON response or an event.
type receivedMessage struct {
	MessageID       string                   `json:"messageId"`
	MessageStringID string                   `json:"messageStringId"`
	Payload         json.RawMessage          `json:"payload"`
	Encoding        encoding                 `json:"encoding"`
	PayloadSize     *int                     `json:"payloadSize,omitempty"` // full size if Payload is truncated
	NullValue       bool                     `json:"nullValue,omitempty"`
	Key             *string                  `json:"key,omitempty"`
	KeyEncoding     string                   `json:"keyEncoding,omitempty"`
	Properties      map[string]string        `json:"properties,omitempty"`
	Headers         brokerhttp.RecordHeaders `json:"headers,omitempty"`
	PublishTime     int64                    `json:"publishTime"`
	EventTime       int64                    `json:"eventTime,omitempty"`
	SequenceID      uint64                   `json:"sequenceId"`
	ProducerName    string                   `json:"producerName,omitempty"`
	SchemaVersion   *int64                   `json:"schemaVersion,omitempty"`
	SchemaID        int32                    `json:"schemaId,omitempty"`
	RedeliveryCount uint32                   `json:"redeliveryCount"`
}

// render returns the JSON form of a message. If the payload cannot be represented in the
// requested encoding, it is encoded in base64; the field encoding names the one used.
func render(m *messaging.Received, requested encoding) receivedMessage {
	out := receivedMessage{
		NullValue: m.NullPayload, SchemaID: m.SchemaID, PublishTime: m.PublishTime, EventTime: m.EventTime,
		SequenceID:   m.Sequence,
		ProducerName: m.Producer, RedeliveryCount: m.Redeliveries,
	}
	out.MessageID, out.MessageStringID = m.ID.Base64(), m.ID.String()
	if m.SchemaVersion >= 0 {
		out.SchemaVersion = &m.SchemaVersion
	}
	out.renderKey(m)
	out.Properties, out.Headers = brokerhttp.PropertiesJSON(m.Properties)
	out.Payload, out.Encoding = encodePayload(m.Payload, requested)
	return out
}

// renderKey sets a key as text if it is text, otherwise in base64. An empty key is in
// base64 too, as producers must send it.
func (out *receivedMessage) renderKey(m *messaging.Received) {
	switch {
	case m.EmptyKey || m.Key != "" && !brokerhttp.Printable(m.Key):
		key := base64.StdEncoding.EncodeToString([]byte(m.Key))
		out.Key, out.KeyEncoding = &key, brokerhttp.EncodingBase64
	case m.Key != "":
		out.Key = &m.Key
	}
}

// rendering is the form of messages in events.
type rendering struct {
	encoding encoding
	limit    int64 // maximum bytes of a payload, if limited is set
	limited  bool
}

// render returns the JSON form of a message. A payload above the limit is truncated, and
// its size is added.
func (r rendering) render(m *messaging.Received) receivedMessage {
	size := len(m.Payload)
	if !r.limited || int64(size) <= r.limit {
		return render(m, r.encoding)
	}
	part := *m
	part.Payload = m.Payload[:r.limit]
	out := render(&part, r.encoding)
	out.PayloadSize = &size
	return out
}

func encodePayload(b []byte, requested encoding) (json.RawMessage, encoding) {
	switch {
	case requested == encodeJSON && json.Valid(b):
		var compact bytes.Buffer // no line breaks, because they would end an event
		if err := json.Compact(&compact, b); err == nil {
			return compact.Bytes(), encodeJSON
		}
	case requested == encodeText && utf8.Valid(b):
		return brokerhttp.Quote(string(b)), encodeText
	}
	return brokerhttp.Quote(base64.StdEncoding.EncodeToString(b)), encodeBase64
}
