package engine

import "time"

// TopicID is the incarnation number of a topic: unique in a cluster for ever.
type TopicID uint64

// MessageID names one message. Entries of a partition start at 0 and grow by one.
type MessageID struct {
	Topic     TopicID
	Partition int32
	Entry     uint64
}

// Property is one key-value pair of a message.
type Property struct {
	Key   string
	Value string
	Null  bool // Value is "" and there is none
}

// NoSchema is the SchemaVersion of a message without one.
const NoSchema int64 = -1

// Message is what a producer hands over.
type Message struct {
	Payload       []byte
	NullPayload   bool   // there is none at all, which is not the same as an empty one
	Key           string // partition key, "" for none
	EmptyKey      bool   // Key is "" and there is one
	Properties    []Property
	EventTime     int64  // epoch milliseconds, 0 for none
	SchemaVersion int64  // version of the topic's schema, or NoSchema
	Producer      string // name of the producer, "" for anonymous
	Sequence      uint64 // the producer's own number, meaningful when HasSequence
	HasSequence   bool
	DeliverAt     int64    // epoch milliseconds before which no subscription gets it, 0 for at once
	Dedup         DedupKey // what a topic that deduplicates knows the message by
}

// DedupKey identifies a message to a topic that deduplicates: of all messages
// with the same key the topic keeps the first. The zero value takes no part.
// It need not be the message's own Producer and Sequence: an idempotency key is
// a producer name with one message.
type DedupKey struct {
	Producer string // "" for a message that is never a duplicate
	Sequence uint64
}

// IsZero says that the message takes no part in deduplication.
func (k DedupKey) IsZero() bool { return k.Producer == "" }

// Appended tells what became of one message of an Append.
type Appended struct {
	ID        MessageID
	Duplicate bool // dropped: the topic deduplicates, and ID is the original's
}

// Record is a stored message.
type Record struct {
	Message
	ID          MessageID
	PublishTime int64     // epoch milliseconds, set by the engine
	Run         RunFormat // format of the run it was split out of; 0 for a message that was appended as one
}

// Weight is what the record counts for against MaxBytes: its payload, key and
// properties, unpacked.
func (r *Record) Weight() int {
	n := len(r.Payload) + len(r.Key)
	for i := range r.Properties {
		n += len(r.Properties[i].Key) + len(r.Properties[i].Value)
	}
	return n
}

// OriginProperty is the property that names the message a dead letter is a
// copy of, as topic:entry:partition. Package messaging shows it as an id.
const OriginProperty = "ORIGIN_MESSAGE_ID"

// Delivery is a record leased to a consumer.
type Delivery struct {
	Record
	Redeliveries uint32    // 0 at the first delivery
	LeasedUntil  time.Time // when it goes back unless settled or extended
}

// TopicConfig is what a topic is told to do; the zero value of a limit means none.
type TopicConfig struct {
	Partitions   int32         // at least 1
	RetainAge    time.Duration // keep settled messages this long; <0 for ever, 0 not at all
	RetainBytes  int64         // keep at most this many settled bytes; <0 no limit, 0 none
	TTL          time.Duration // unacknowledged messages older than this are settled
	BacklogBytes int64         // largest backlog of a subscription in bytes
	BacklogEvict bool          // over BacklogBytes: true trims the oldest, false refuses appends with ErrBacklogFull
	Deduplicate  bool          // drop messages whose DedupKey was seen
	MaxUnacked   int           // leased messages per subscription; over it Receive waits
	Terminated   bool          // appends are refused with ErrTerminated
}

// SubscriptionConfig is what a subscription is told to do.
type SubscriptionConfig struct {
	Lease           time.Duration     // default lease; 0 means DefaultLease
	MaxDeliveries   uint32            // deliveries before a message is dead; 0 for no limit
	DeadLetterTopic TopicID           // where dead messages go (partition 0); needed with MaxDeliveries
	Properties      map[string]string // free-form
}

// DefaultLease is how long a consumer has to settle when nobody says otherwise.
const DefaultLease = 30 * time.Second

// PositionKind says how a Position is to be read.
type PositionKind uint8

// The ways to name a place in a topic.
const (
	Latest   PositionKind = iota // behind the last durable message
	Earliest                     // at the first message still kept
	// at Position.ID, inclusive, on its partition; other partitions stay (earliest on create)
	AtID
	AfterID  // behind Position.ID
	AtTime   // at the first message published at or after Position.Time, by the millisecond
	SkipN    // past the next Position.Count unsettled messages; reset only
	SkipTime // past messages published before Position.Time, never backwards; reset only
)

// Position names a place in a topic.
type Position struct {
	Kind  PositionKind
	ID    MessageID
	Time  time.Time
	Count uint64
}

// AllPartitions makes a Read or Receive drain every partition.
const AllPartitions int32 = -1

// ReceiveRequest says what a consumer wants.
type ReceiveRequest struct {
	Max       int           // most messages to lease; at least 1
	MaxBytes  int           // stop adding messages past this many bytes of Weight; 0 for no limit
	Wait      time.Duration // how long to wait for the first; 0 not at all
	Lease     time.Duration // 0 means the subscription's
	Partition int32         // one partition, or AllPartitions
}

// ReadRequest says which messages to read without a subscription's leases.
type ReadRequest struct {
	Partition int32
	From      uint64 // first entry wanted
	// with AllPartitions: first entry wanted of each partition, 0 behind its end; nil for From
	FromEach     []uint64
	Since        time.Time     // when set: only messages published at or after
	Subscription string        // when set: only messages this subscription has not acknowledged
	Max          int           // most messages; at least 1
	MaxBytes     int           // stop past this many bytes of Weight; 0 for no limit
	Wait         time.Duration // how long to wait for the first
}

// Action is what a consumer says about a message.
type Action uint8

// The actions.
const (
	Ack     Action = iota // done with it, durably
	AckTo                 // done with it and everything before it on its partition
	Nack                  // give it back after Settlement.Delay; ErrLeaseEnded when the caller does not have it
	Extend                // keep it for Settlement.Delay from now; ErrLeaseEnded when the caller does not have it
	Release               // give it back at once when the caller still has it, else nothing
)

// Settlement is one action on one message.
type Settlement struct {
	ID     MessageID
	Action Action
	Delay  time.Duration
	// Delivery says which lease the caller speaks of: the one of the delivery
	// with Redeliveries+1 == Delivery. Acknowledgements count without it.
	// Nack, Extend and Release need that lease to be in force. 0 does not say:
	// then they mean the lease in force, unless an earlier one of the message
	// ran out, whose holder may not have noticed.
	Delivery uint32
}

// PartitionStats are the statistics of one partition.
type PartitionStats struct {
	First       uint64 // first entry still kept
	Next        uint64 // entry the next message will get; durable ones only
	Bytes       int64  // stored bytes
	LastPublish int64  // epoch milliseconds, 0 for never
}

// CursorStats are the statistics of a subscription on one partition.
type CursorStats struct {
	Floor uint64 // every entry below is acknowledged
	Acked uint64 // acknowledged entries at or above Floor
}

// SubscriptionStats are the statistics of one subscription.
type SubscriptionStats struct {
	Name         string
	Config       SubscriptionConfig
	Cursors      []CursorStats // by partition
	Backlog      uint64        // messages not acknowledged
	BacklogBytes int64
	Leased       uint64 // handed out and not settled
	Delayed      uint64 // not due yet
	Waiting      int    // callers waiting in Receive
	Redelivered  uint64 // since the engine opened
}

// TopicStats are the statistics of one topic.
type TopicStats struct {
	Config        TopicConfig
	Partitions    []PartitionStats
	Subscriptions []SubscriptionStats // by name
}
