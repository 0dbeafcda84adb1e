package engine

import "context"

// RunFormat identifies the encoding of a batch's body.
type RunFormat uint8

// The formats of batches that callers may append.
const (
	RecordBatch RunFormat = 1 // record batch version 2 of the Kafka protocol
)

// Run is a batch of consecutive messages that is stored as one value. The engine does
// not interpret Body; the Splitter decodes it according to Format.
type Run struct {
	Format  RunFormat
	Count   int32  // number of messages, and so of entries; at least 1
	MaxTime int64  // largest timestamp of its messages, epoch milliseconds
	Body    []byte // valid only during the call
}

// Side is a small key-value pair of a partition that is written atomically with a batch.
type Side struct {
	Key   []byte // at most MaxSide bytes
	Value []byte // at most MaxSide bytes; nil deletes the key
}

// MaxSide is the maximum size of an Attribute's key and of its value, in bytes.
const MaxSide = 1 << 10

// Ticket is an appended batch that may not be durable yet.
type Ticket interface {
	// First returns the entry of the batch's first message.
	First() uint64
	// PublishTime returns when the batch was appended, epoch milliseconds.
	PublishTime() int64
	// Wait returns nil once the batch is durable and visible. When ctx ends first, the
	// outcome is unknown to the caller: the append may still succeed.
	Wait(ctx context.Context) error
}

// Runs appends and reads whole batches, finds messages by time and trims partitions.
type Runs interface {
	// AppendRun assigns entries to the batch, after every batch and message appended
	// before, and returns without waiting for durability: the batch is durable and visible
	// once Wait of the result returns nil. Batches appended by one goroutine keep their
	// order. The function attributes, which may be nil, gets the entry of the batch's first
	// message and returns the attributes to write atomically with the batch. The engine
	// calls it under a lock, so it must be fast and must not call the engine.
	AppendRun(ctx context.Context, id TopicID, partition int32, run Run,
		sides func(first uint64) []Side) (Ticket, error)
	// ReadRuns calls visit for the durable batches and single messages from an entry on, in
	// order. The first batch may begin before the entry. ReadRuns stops when visit returns
	// false, and returns the partition's extent as of the beginning of the call; with a nil
	// visit it returns the extent only.
	ReadRuns(ctx context.Context, id TopicID, partition int32, from uint64,
		visit func(*Stored) (more bool, err error)) (Extent, error)
	// Grown waits until one of the partitions has a durable entry at or after its position.
	// It registers one waiter, however many partitions there are.
	Grown(ctx context.Context, marks []Mark) error
	// Find returns the first entry whose timestamp is at least millis. The timestamp of a
	// message is its event time or, without one, its publish time.
	Find(ctx context.Context, id TopicID, partition int32, millis int64) (Found, error)
	// FindNewest returns the entry with the largest timestamp.
	FindNewest(ctx context.Context, id TopicID, partition int32) (Found, error)
	// Sides calls visit for the partition's attributes whose keys have a prefix, in the order
	// of the keys. It waits until every batch appended before the call is durable, and includes
	// the attributes of these batches. The attribute is valid only during the call of visit.
	Sides(ctx context.Context, id TopicID, partition int32, prefix []byte, visit func(Side) error) error
	// Trim deletes a partition's messages before an entry, consumed or not: subscriptions
	// continue at the entry, and a deduplicating topic forgets the deleted messages. It
	// returns the first entry that is left, once the deletion is durable. A batch that
	// contains the entry is stored unchanged, but only its messages from the entry on are
	// read individually. Trim does nothing when the partition begins at or after the entry,
	// and returns ErrNoMessage when the entry is beyond the partition's end.
	Trim(ctx context.Context, id TopicID, partition int32, before uint64) (first uint64, err error)
}

// Stored is one value of a partition: a batch or a single message.
type Stored struct {
	First       uint64 // entry of the first message
	PublishTime int64
	Run         Run    // Count is 0 for a single message; Body is valid only during the call
	Record      Record // set for a single message
}

// Extent is the range of entries that a partition has.
type Extent struct {
	First uint64 // first entry that is not trimmed
	Next  uint64 // first entry that is not durable yet
}

// Mark is a position in a partition.
type Mark struct {
	Topic     TopicID
	Partition int32
	Entry     uint64
}

// Found is the result of a search by time.
type Found struct {
	OK    bool // a message matches
	Entry uint64
	Time  int64 // timestamp of the message
}

// Splitter decodes batches into messages. An engine gets one when it is opened.
type Splitter interface {
	// Split calls each for every message of a batch, in order; i is the message's index,
	// its entry minus the batch's first. A message that the batch no longer contains is
	// skipped. m may share memory with body.
	Split(format RunFormat, body []byte, each func(i int32, m *Message) error) error
}

// Timestamp returns the time by which FindByTime finds the message: its event time or,
// without one, its publish time.
func (m *Message) Timestamp(published int64) int64 {
	if m.EventTime != 0 {
		return m.EventTime
	}
	return published
}
