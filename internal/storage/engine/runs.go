package engine

import "context"

// RunFormat says how the messages of a run are packed into its body.
type RunFormat uint8

// The formats of runs that callers may hand over.
const (
	RecordBatch RunFormat = 1 // record batch version 2 of the stream protocol
)

// Run is a batch of consecutive messages that is kept as one value. The engine
// does not look into Body; whoever gave Format can split it.
type Run struct {
	Format  RunFormat
	Count   int32  // entries it takes, at least 1
	MaxTime int64  // largest timestamp of its messages, epoch milliseconds
	Body    []byte // valid during the call
}

// Side is a small piece of a partition's state, written with a run or not at
// all.
type Side struct {
	Key   []byte // at most MaxSide bytes
	Value []byte // as many; nil deletes
}

// MaxSide bounds the key and the value of a side.
const MaxSide = 1 << 10

// Ticket is the place of a run in its partition.
type Ticket interface {
	// First is the entry of the run's first message.
	First() uint64
	// PublishTime is when the run was placed, epoch milliseconds.
	PublishTime() int64
	// Wait returns nil once the run is durable, and visible. When ctx ends
	// first the outcome is unknown to the caller, and most likely a success.
	Wait(ctx context.Context) error
}

// Runs appends and reads batches as they are.
type Runs interface {
	// AppendRun gives the run its place behind everything placed before and
	// returns at once. It is durable, and visible, when Wait of the ticket
	// returns nil. Runs placed by one goroutine keep their order. sides, which may
	// be nil, is called with the entry of the run's first message and returns what
	// is to be written with it; it must be quick and must not call the engine.
	AppendRun(ctx context.Context, id TopicID, partition int32, run Run,
		sides func(first uint64) []Side) (Ticket, error)
	// ReadRuns calls visit for what is durable from an entry on, in order: runs
	// as they are, single messages as records. The first run may begin before
	// the entry. It stops when visit says so, and returns the partition's extent
	// as it was at the beginning.
	ReadRuns(ctx context.Context, id TopicID, partition int32, from uint64,
		visit func(*Stored) (more bool, err error)) (Extent, error)
	// Grown returns nil when one of the partitions has durable entries at or
	// behind its mark; one waiter however many partitions.
	Grown(ctx context.Context, marks []Mark) error
	// Find returns the first entry with a timestamp of at least millis. A
	// message's timestamp is its event time, or else when it was published.
	Find(ctx context.Context, id TopicID, partition int32, millis int64) (Found, error)
	// FindNewest returns the entry with the largest timestamp.
	FindNewest(ctx context.Context, id TopicID, partition int32) (Found, error)
	// Sides calls visit for a partition's sides whose keys have a prefix, in
	// order, as they are with everything that was placed before; it waits until
	// that is durable. What it is shown is valid during the call.
	Sides(ctx context.Context, id TopicID, partition int32, prefix []byte, visit func(Side) error) error
	// Trim removes a partition's messages before an entry, whoever has not read
	// them yet: subscriptions go on behind them, and a topic that deduplicates
	// forgets them. It returns the first entry that is left, once that is durable.
	// A run that reaches over the entry stays whole, and only its messages from the
	// entry on are read one by one. Where nothing is left to remove it changes
	// nothing; ErrNoMessage when the entry is behind the partition's end.
	Trim(ctx context.Context, id TopicID, partition int32, before uint64) (first uint64, err error)
}

// Stored is what stands in a partition: a run, or one message.
type Stored struct {
	First       uint64 // entry of the first message
	PublishTime int64
	Run         Run    // Count 0 for one message; Body is valid during the call
	Record      Record // when it is one message
}

// Extent is where a partition begins and ends.
type Extent struct {
	First uint64 // first entry still kept
	Next  uint64 // entry the next message will get; durable ones only
}

// Mark is a place in a partition.
type Mark struct {
	Topic     TopicID
	Partition int32
	Entry     uint64
}

// Found is a message that was looked for by time.
type Found struct {
	OK    bool // there is one
	Entry uint64
	Time  int64 // its timestamp
}

// Splitter turns a run into messages. An engine gets one when it is opened.
type Splitter interface {
	// Split calls each for every message of a run, in order; i is its entry less
	// the run's first. What m points to is valid as long as body is. A message
	// that the run no longer has is left out.
	Split(format RunFormat, body []byte, each func(i int32, m *Message) error) error
}

// Timestamp is what a message that was published then is looked up by.
func (m *Message) Timestamp(published int64) int64 {
	if m.EventTime != 0 {
		return m.EventTime
	}
	return published
}
