package messaging

import (
	"slices"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Property is one key-value pair of a message.
type Property = engine.Property

// NoSchema is the SchemaVersion of a message without a schema. From a producer it means the latest
// version.
const NoSchema = engine.NoSchema

// Message is a message as producers send it and consumers receive it.
type Message struct {
	Payload       []byte
	NullPayload   bool   // null, which differs from an empty payload
	Key           string // decides the partition; "" for none
	EmptyKey      bool   // the key exists and is empty
	BinaryKey     bool   // Key holds raw bytes; otherwise HTTP clients may have sent base64
	Properties    []Property
	EventTime     int64 // epoch milliseconds; 0 for none
	SchemaVersion int64 // NoSchema from a producer means the latest
	Producer      string
	Sequence      uint64 // sequence number set by the producer
	HasSequence   bool
	DeliverAt     int64 // epoch milliseconds; 0 for immediate delivery
	// IdempotencyKey identifies retries of the same message; consumers do not receive it.
	IdempotencyKey string

	replayOf string // id of the dead letter of which this is a copy; identifies retries, and no producer can set it
}

// Produced is the result of producing a message.
type Produced struct {
	ID            names.MessageID
	SchemaVersion int64
	Duplicate     bool // ID is that of an earlier message with the same key or sequence
}

// Received is a message as the broker delivers it.
type Received struct {
	Message
	ID           names.MessageID
	PublishTime  int64     // epoch milliseconds
	Redeliveries uint32    // 0 at the first delivery
	LeasedUntil  time.Time // zero for messages that were read without a lease
	SchemaID     int32     // registry id in front of the value, where the topic requires one; 0 for none
}

func (m *Message) check(r *rules, limits *Limits, at int64) error {
	if len(m.Payload) > r.messageBytes {
		return errs.Newf(errs.TooLarge, "%w: %d bytes, limit is %d", ErrTooLarge, len(m.Payload), r.messageBytes)
	}
	size := len(m.Key) + len(m.Producer) + len(m.IdempotencyKey)
	for i := range m.Properties {
		p := &m.Properties[i]
		if strings.HasPrefix(p.Key, format1Prefix) {
			return errs.Newf(errs.Invalid, "%w: property name begins with a zero byte", ErrMessage)
		}
		size += len(p.Key) + len(p.Value)
	}
	if size > limits.MetadataBytes {
		return errs.Newf(errs.Invalid, "%w: key, properties and producer are over %d bytes", ErrMessage,
			limits.MetadataBytes)
	}
	if hasControl(m.Producer) || hasControl(m.IdempotencyKey) {
		return errs.Newf(errs.Invalid, "%w: producer name or idempotency key holds a control character", ErrMessage)
	}
	if m.EventTime < 0 {
		return errs.Newf(errs.Invalid, "%w: event time is negative", ErrMessage)
	}
	if m.DeliverAt != 0 {
		if !r.delayedDelivery {
			return ErrNoDelay
		}
		if m.DeliverAt < 0 || m.DeliverAt > at+limits.MaxDelay.Milliseconds() {
			return errs.Newf(errs.Invalid, "%w: delivery time is more than %s away", ErrMessage, limits.MaxDelay)
		}
	}
	return nil
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// toEngine converts a message to the engine's form.
func (m *Message) toEngine(version int64, deduplicate bool) engine.Message {
	return engine.Message{
		Payload: m.Payload, NullPayload: m.NullPayload, Key: m.Key, EmptyKey: m.EmptyKey, Properties: m.Properties,
		EventTime:     m.EventTime,
		SchemaVersion: version, DeliverAt: m.DeliverAt,
		Producer: m.Producer, Sequence: m.Sequence, HasSequence: m.HasSequence,
		Dedup: m.dedupKey(deduplicate),
	}
}

// idempotencyKeyPrefix prefixes deduplication keys that are idempotency keys. No producer can have such
// a name, because names with control characters are rejected. Stored messages contain the prefix,
// so it must not change.
const idempotencyKeyPrefix = "\x00key:"

// replayPrefix prefixes deduplication keys of copies of dead letters. No idempotency key can equal one, so
// no producer can make a replay take a message of its own for the copy.
const replayPrefix = "\x00replay:"

// dedupKey returns the key by which the engine detects duplicates of the message: the dead letter of
// which it is a copy, the idempotency key, or producer and sequence number where the topic deduplicates.
func (m *Message) dedupKey(deduplicate bool) engine.DedupKey {
	switch {
	case m.replayOf != "":
		return engine.DedupKey{Producer: replayPrefix + m.replayOf}
	case m.IdempotencyKey != "":
		return engine.DedupKey{Producer: idempotencyKeyPrefix + m.IdempotencyKey}
	case deduplicate && m.Producer != "" && m.HasSequence:
		return engine.DedupKey{Producer: m.Producer, Sequence: m.Sequence}
	}
	return engine.DedupKey{}
}

// received converts a stored message to its public form.
func (c *Consumer) received(t *topic, r *engine.Record) Received {
	out := t.received(r)
	at := len(out.Properties) - 1
	if isRecordDeadLetter(r) {
		at = 0
	}
	if at >= 0 && r.Run == 0 && out.Properties[at].Key == engine.OriginProperty {
		out.Properties = slices.Clone(out.Properties)
		out.Properties[at].Value = c.origin(out.Properties[at].Value)
	}
	return out
}

// isRecordDeadLetter reports whether a message is the dead letter of a Kafka record. Its origin property
// comes before the record's headers, which may have any name.
func isRecordDeadLetter(r *engine.Record) bool {
	return r.Run == 0 && len(r.Properties) > 0 && r.Properties[0].Key == engine.OriginProperty
}

// origin converts the message id in a dead letter's origin property to its public form: the engine
// numbers the only partition of an unpartitioned topic 0, the public form -1. The engine's ids have
// three parts; any other value was set by the producer and stays.
func (c *Consumer) origin(name string) string {
	if strings.Count(name, ":") != 2 {
		return name
	}
	id, err := names.ParseMessageID(name)
	if err != nil {
		return name
	}
	if t, ok := c.catalogue.state.View().byID.Get(engine.TopicID(id.Ledger)); id.Partition == 0 &&
		(!ok || t.partitions == 0) {
		id.Partition = -1
	}
	return id.String()
}

func (t *topic) received(r *engine.Record) Received {
	out := Received{
		Message: Message{
			Payload: r.Payload, NullPayload: r.NullPayload, Key: r.Key, EmptyKey: r.EmptyKey, Properties: r.Properties,
			EventTime:     r.EventTime,
			SchemaVersion: r.SchemaVersion, DeliverAt: r.DeliverAt,
			Producer: r.Producer, Sequence: r.Sequence, HasSequence: r.HasSequence,
		},
		ID:          t.messageID(r.ID),
		PublishTime: r.PublishTime,
	}
	if t.prefixedValue {
		out.SchemaID, _ = prefixID(r.Payload)
	}
	if r.Run == 0 && !isRecordDeadLetter(r) { // headers of a Kafka record may have any name
		out.readFormat1()
	}
	if !out.HasSequence {
		// Pulsar producers number their messages from 0 unless the caller sets a sequence id. The
		// entry number equals that.
		out.Sequence = r.ID.Entry
	}
	return out
}

// messageID converts an engine id of this topic to the public message id.
func (t *topic) messageID(id engine.MessageID) names.MessageID {
	out := names.MessageID{Ledger: int64(id.Topic), Entry: int64(id.Entry), Partition: id.Partition, BatchSize: 1}
	if t.partitions == 0 {
		out.Partition = -1
	}
	return out
}

// engineID converts a public message id of this target to the engine's id. It returns ErrForeignID
// for the id of another topic or partition.
func (t target) engineID(id names.MessageID) (engine.MessageID, error) {
	if id.Ledger < 0 || id.Entry < 0 {
		return engine.MessageID{}, errs.Newf(errs.Invalid, "%w: %s is negative", ErrMessageID, id)
	}
	out := engine.MessageID{Topic: t.id, Partition: id.Partition, Entry: uint64(id.Entry)}
	if engine.TopicID(id.Ledger) != t.id {
		return out, ErrForeignID
	}
	switch {
	case t.partitions == 0:
		if id.Partition > 0 {
			return out, ErrForeignID
		}
		out.Partition = 0
	case id.Partition < 0 || id.Partition >= t.partitions, t.partition >= 0 && id.Partition != t.partition:
		return out, ErrForeignID
	}
	return out, nil
}
