package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Message is a message to produce, and the corresponding part of a Received message. Only
// Value is required.
type Message struct {
	// Value is the payload.
	Value []byte
	// NullValue sends a message without a value. On a compacted topic it deletes the value
	// of the key. Value must be empty then.
	NullValue bool
	// Key selects the partition: messages with the same key keep their order. It may contain
	// any bytes. "" is no key, unless EmptyKey is set.
	Key      string
	EmptyKey bool
	// Properties are attributes of the message. For a received message they contain the
	// headers that are text.
	Properties map[string]string
	// Headers are the properties as bytes and in order. If they are set, Properties are not
	// sent. A received message has Headers only if Properties cannot represent them.
	Headers []Header
	// EventTime is the time of the event in milliseconds; zero is none.
	EventTime time.Time
	// SchemaVersion is the version of the topic's schema with which Value is encoded; nil is
	// the latest version, and for a received message none.
	SchemaVersion *int64
	// Sequence is the sequence number of the producer.
	Sequence *uint64
	// DeliverAt and DeliverAfter delay the delivery. Set at most one of them. They are not
	// set on received messages.
	DeliverAt    time.Time
	DeliverAfter time.Duration
	// IdempotencyKey makes a second message with the same key a duplicate of the first, for
	// the deduplication window of the topic. The client generates a key if it is empty, so
	// that it can retry a call without a response.
	IdempotencyKey string
}

// Header is a property with a binary value. A nil Value is null.
type Header struct {
	Name  string
	Value []byte
}

// Received is a message from the server.
type Received struct {
	Message
	// ID identifies the message, and in a Delivery also the delivery; StringID is
	// ledger:entry:partition:batch.
	ID, StringID string
	// PublishTime is when the server stored the message.
	PublishTime time.Time
	// Redeliveries is how often the message was delivered before.
	Redeliveries int
	// Producer is the name of the producer.
	Producer string
	// SchemaID is the id of the registry schema before the value, if the topic requires one;
	// 0 is none.
	SchemaID int
}

// Partition returns the partition of the message, or -1 for a topic without partitions.
func (r *Received) Partition() int {
	parts := strings.Split(r.StringID, ":")
	if len(parts) < 3 {
		return -1
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		return -1
	}
	return n
}

// Produced is the result of a stored message.
type Produced struct {
	// ID and StringID identify the message.
	ID, StringID string
	// Duplicate is true if the topic already had the message.
	Duplicate bool
	// SchemaVersion is the schema version that the server set on the message; nil is none.
	SchemaVersion *int64
}

// wireHeaders are headers in JSON: arrays of a name, and a value in base64 or null. A third
// element "base64" means that the name is also in base64.
type wireHeaders []Header

// MarshalJSON implements json.Marshaler.
func (l wireHeaders) MarshalJSON() ([]byte, error) {
	list := make([][]*string, len(l))
	for i := range l {
		name, item := l[i].Name, make([]*string, 2, 3)
		if !utf8.ValidString(name) {
			name = base64.StdEncoding.EncodeToString([]byte(name))
			item = append(item, new("base64"))
		}
		item[0] = &name
		if l[i].Value != nil {
			item[1] = new(base64.StdEncoding.EncodeToString(l[i].Value))
		}
		list[i] = item
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *wireHeaders) UnmarshalJSON(text []byte) error {
	var list [][]*string
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*l = nil
	for _, item := range list {
		if len(item) < 2 || item[0] == nil {
			return errors.New("header is not a pair of name and value")
		}
		header := Header{Name: *item[0]}
		if len(item) > 2 {
			name, err := base64.StdEncoding.DecodeString(header.Name)
			if err != nil {
				return err
			}
			header.Name = string(name)
		}
		if item[1] != nil {
			value, err := base64.StdEncoding.DecodeString(*item[1])
			if err != nil {
				return err
			}
			if header.Value = value; value == nil {
				header.Value = []byte{}
			}
		}
		*l = append(*l, header)
	}
	return nil
}

// wireReceived is a message in a JSON response or an event.
type wireReceived struct {
	MessageID       string            `json:"messageId"`
	MessageStringID string            `json:"messageStringId"`
	Payload         []byte            `json:"payload"` // the client requests base64
	NullValue       bool              `json:"nullValue"`
	Key             *string           `json:"key"`
	KeyEncoding     string            `json:"keyEncoding"`
	Properties      map[string]string `json:"properties"`
	Headers         wireHeaders       `json:"headers"`
	PublishTime     int64             `json:"publishTime"`
	EventTime       int64             `json:"eventTime"`
	SequenceID      uint64            `json:"sequenceId"`
	ProducerName    string            `json:"producerName"`
	SchemaVersion   *int64            `json:"schemaVersion"`
	SchemaID        int               `json:"schemaId"`
	RedeliveryCount int               `json:"redeliveryCount"`
}

func (w *wireReceived) received() (Received, error) {
	r := Received{
		Message: Message{
			Value: w.Payload, NullValue: w.NullValue, Properties: w.Properties, Headers: w.Headers,
			SchemaVersion: w.SchemaVersion, Sequence: &w.SequenceID,
		},
		ID: w.MessageID, StringID: w.MessageStringID, PublishTime: time.UnixMilli(w.PublishTime),
		Redeliveries: w.RedeliveryCount, Producer: w.ProducerName, SchemaID: w.SchemaID,
	}
	if w.EventTime != 0 {
		r.EventTime = time.UnixMilli(w.EventTime)
	}
	if w.Key != nil {
		r.Key = *w.Key
		if w.KeyEncoding == "base64" {
			key, err := base64.StdEncoding.DecodeString(r.Key)
			if err != nil {
				return r, fmt.Errorf("decoding the key of message %s: %w", r.StringID, err)
			}
			r.Key = string(key)
		}
		r.EmptyKey = r.Key == ""
	}
	return r, nil
}

// wireMessage is a message in the JSON of a produced batch.
type wireMessage struct {
	Payload            []byte            `json:"payload,omitempty"`
	NullValue          bool              `json:"nullValue,omitempty"`
	Key                *string           `json:"key,omitempty"`
	KeyEncoding        string            `json:"keyEncoding,omitempty"`
	Properties         map[string]string `json:"properties,omitempty"`
	Headers            wireHeaders       `json:"headers,omitempty"`
	EventTime          int64             `json:"eventTime,omitempty"`
	SequenceID         *uint64           `json:"sequenceId,omitempty"`
	SchemaVersion      *int64            `json:"schemaVersion,omitempty"`
	DeliverAt          int64             `json:"deliverAt,omitempty"`
	DeliverAfterMillis *int64            `json:"deliverAfterMillis,omitempty"`
	IdempotencyKey     string            `json:"idempotencyKey,omitempty"`
}

func (m *Message) wire() wireMessage {
	w := wireMessage{
		Payload: m.Value, NullValue: m.NullValue, Properties: m.Properties, Headers: m.Headers,
		SequenceID: m.Sequence, SchemaVersion: m.SchemaVersion, IdempotencyKey: m.IdempotencyKey,
	}
	if m.Headers != nil {
		w.Properties = nil
	}
	if m.Key != "" || m.EmptyKey {
		key, encoding := m.wireKey()
		w.Key, w.KeyEncoding = &key, encoding
	}
	if !m.EventTime.IsZero() {
		w.EventTime = m.EventTime.UnixMilli()
	}
	if !m.DeliverAt.IsZero() {
		w.DeliverAt = m.DeliverAt.UnixMilli()
	}
	if m.DeliverAfter > 0 {
		w.DeliverAfterMillis = new(m.DeliverAfter.Milliseconds())
	}
	return w
}

// wireKey returns the key in a form that headers and JSON can contain.
func (m *Message) wireKey() (key, encoding string) {
	plain := m.Key != "" && strings.Trim(m.Key, " ") == m.Key
	for i := 0; plain && i < len(m.Key); i++ {
		plain = m.Key[i] >= ' ' && m.Key[i] < 0x7f
	}
	if plain {
		return m.Key, ""
	}
	return base64.StdEncoding.EncodeToString([]byte(m.Key)), "base64"
}

// size returns the approximate size of the message in a call.
func (m *Message) size() int {
	n := len(m.Value)*4/3 + len(m.Key) + 128
	for name, value := range m.Properties {
		n += len(name) + len(value) + 8
	}
	for i := range m.Headers {
		n += len(m.Headers[i].Name) + len(m.Headers[i].Value)*4/3 + 8
	}
	return n
}
