package engine

import "context"

// BatchFormat identifies the encoding of a batch's body.
type BatchFormat uint8

// The formats of batches that callers may append.
const (
	KafkaRecordBatch BatchFormat = 1 // record batch version 2 of the Kafka protocol
)

// MessageBatch is a batch of consecutive messages that is stored as one value. The engine does
// not interpret Body; the Splitter decodes it according to Format.
type MessageBatch struct {
	Format  BatchFormat
	Count   int32  // number of messages, and so of entries; at least 1
	MaxTime int64  // largest timestamp of its messages, epoch milliseconds
	Body    []byte // valid only during the call
}

// Attribute is a small key-value pair of a partition that is written atomically with a batch.
type Attribute struct {
	Key   []byte // at most MaxAttributeBytes bytes
	Value []byte // at most MaxAttributeBytes bytes; nil deletes the key
}

// AttributeWrite is an Attribute that AppendBatch writes.
type AttributeWrite struct {
	Attribute
	// AppendEntry makes the engine append the entry of the batch's first message to the value,
	// as eight bytes in big-endian order. The caller does not know that entry before the
	// append.
	AppendEntry bool
}

// MaxAttributeBytes is the maximum size of an Attribute's key and of its value, in bytes. The
// value includes an appended entry.
const MaxAttributeBytes = 1 << 10

// PendingAppend is an appended batch that may not be durable yet.
type PendingAppend interface {
	// First returns the entry of the batch's first message.
	First() uint64
	// PublishTime returns when the batch was appended, epoch milliseconds.
	PublishTime() int64
	// Wait returns nil once the batch is durable and visible. When ctx ends first, the
	// outcome is unknown to the caller: the append may still succeed.
	Wait(ctx context.Context) error
}

// Batches appends and reads whole batches, finds messages by time and trims partitions.
type Batches interface {
	// AppendBatch assigns entries to the batch, after every batch and message appended
	// before, and returns without waiting for durability: the batch is durable and visible
	// once Wait of the result returns nil. Batches appended by one goroutine keep their
	// order. The attributes are written atomically with the batch; the engine does not retain
	// them.
	AppendBatch(ctx context.Context, id TopicID, partition int32, batch MessageBatch,
		attributes []AttributeWrite) (PendingAppend, error)
	// ReadBatches calls visit for the durable batches and single messages from an entry on, in
	// order. The first batch may begin before the entry. ReadBatches stops when visit returns
	// false, and returns the partition's extent as of the beginning of the call; with a nil
	// visit it returns the extent only.
	ReadBatches(ctx context.Context, id TopicID, partition int32, from uint64,
		visit func(*StoredValue) (more bool, err error)) (Extent, error)
	// WaitEntries waits until one of the partitions has a durable entry at or after its position.
	// It registers one waiter, however many partitions there are.
	WaitEntries(ctx context.Context, positions []PartitionPosition) error
	// FindByTime returns the first entry whose timestamp is at least millis. The timestamp of a
	// message is its event time or, without one, its publish time.
	FindByTime(ctx context.Context, id TopicID, partition int32, millis int64) (FindResult, error)
	// FindNewest returns the entry with the largest timestamp.
	FindNewest(ctx context.Context, id TopicID, partition int32) (FindResult, error)
	// Attributes calls visit for the partition's attributes whose keys have a prefix, in the order
	// of the keys. It waits until every batch appended before the call is durable, and includes
	// the attributes of these batches. The attribute is valid only during the call of visit.
	Attributes(ctx context.Context, id TopicID, partition int32, prefix []byte, visit func(Attribute) error) error
	// Trim deletes a partition's messages before an entry, consumed or not: subscriptions
	// continue at the entry, and a deduplicating topic forgets the deleted messages. It
	// returns the first entry that is left, once the deletion is durable. A batch that
	// contains the entry is stored unchanged, but only its messages from the entry on are
	// read individually. Trim does nothing when the partition begins at or after the entry,
	// and returns ErrNoMessage when the entry is beyond the partition's end.
	Trim(ctx context.Context, id TopicID, partition int32, before uint64) (first uint64, err error)
}

// StoredValue is one value of a partition: a batch or a single message.
type StoredValue struct {
	First       uint64 // entry of the first message
	PublishTime int64
	Run         MessageBatch // Count is 0 for a single message; Body is valid only during the call
	Record      Record       // set for a single message
}

// Extent is the range of entries that a partition has.
type Extent struct {
	First uint64 // first entry that is not trimmed
	Next  uint64 // first entry that is not durable yet
}

// PartitionPosition is a position in a partition.
type PartitionPosition struct {
	Topic     TopicID
	Partition int32
	Entry     uint64
}

// FindResult is the result of a search by time.
type FindResult struct {
	OK    bool // a message matches
	Entry uint64
	Time  int64 // timestamp of the message
}

// Splitter decodes batches into messages. An engine gets one when it is opened.
type Splitter interface {
	// Open returns a reader of a batch. The body must not change before the reader is closed.
	Open(format BatchFormat, body []byte) (BatchReader, error)
}

// BatchReader decodes the messages of a batch one by one.
type BatchReader interface {
	// Next returns the next message whose index, its entry minus the batch's first, is at least
	// from, and the index. It skips messages that the batch no longer contains, and returns
	// io.EOF after the last. The message may share memory with the body, but not with the reader.
	// Next calls grow before the reader holds more memory, with all that it will hold in bytes.
	// After an error of grow, the call may be repeated.
	Next(from int32, grow func(total int64) error) (i int32, m *Message, err error)
	// Memory returns how much memory the reader holds in bytes, without the body.
	Memory() int64
	// Close releases the reader's memory.
	Close()
}

// Timestamp returns the time by which FindByTime finds the message: its event time or,
// without one, its publish time.
func (m *Message) Timestamp(published int64) int64 {
	if m.EventTime != 0 {
		return m.EventTime
	}
	return published
}
