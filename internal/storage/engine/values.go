package engine

import "time"

// TopicID identifies one incarnation of a topic. It is unique in a cluster and never
// reused; 0 identifies no topic.
type TopicID uint64

// MessageID identifies one message. Entries of a partition start at 0 and grow by one.
type MessageID struct {
	Topic     TopicID
	Partition int32
	Entry     uint64
}

// Property is one key-value pair of a message.
type Property struct {
	Key   string
	Value string
	Null  bool // the property has no value, and Value is ""
}

// NoSchema is the SchemaVersion of a message without one.
const NoSchema int64 = -1

// Message is a message as the producer sends it.
type Message struct {
	Payload       []byte
	NullPayload   bool   // the payload is null, which differs from an empty one
	Key           string // partition key, "" for none
	EmptyKey      bool   // the message has a key, and it is ""
	Properties    []Property
	EventTime     int64  // epoch milliseconds, 0 for none
	SchemaVersion int64  // version of the topic's schema, or NoSchema
	Producer      string // name of the producer, "" for anonymous
	Sequence      uint64 // sequence number of the producer, valid when HasSequence is set
	HasSequence   bool
	DeliverAt     int64    // epoch milliseconds before which it is not delivered, 0 for no delay
	Dedup         DedupKey // deduplication key
}

// DedupKey identifies a message in a deduplicating topic, which stores only the first
// message with a key. The zero value switches deduplication off for the message. The key
// need not be the message's own Producer and Sequence: an idempotency key is stored as a
// producer name with a single message.
type DedupKey struct {
	Producer string // "" for a message that is not deduplicated
	Sequence uint64
}

// IsZero reports whether the message is not deduplicated.
func (k DedupKey) IsZero() bool { return k.Producer == "" }

// Appended is the result of an Append for one message.
type Appended struct {
	ID        MessageID
	Duplicate bool // the message was dropped as a duplicate; ID is that of the original
}

// Record is a stored message.
type Record struct {
	Message
	ID          MessageID
	PublishTime int64       // epoch milliseconds, set by the engine
	Run         BatchFormat // format of the batch that contains it; 0 for a message appended individually
}

// Weight returns the bytes that the record counts against MaxBytes: those of its payload,
// key and properties, uncompressed.
func (r *Record) Weight() int {
	n := len(r.Payload) + len(r.Key)
	for i := range r.Properties {
		n += len(r.Properties[i].Key) + len(r.Properties[i].Value)
	}
	return n
}

// OriginProperty is the property of a dead letter that identifies the original message,
// as topic:entry:partition. Package messaging translates it into a message id.
const OriginProperty = "ORIGIN_MESSAGE_ID"

// Delivery is a record leased to a consumer.
type Delivery struct {
	Record
	Redeliveries uint32    // 0 at the first delivery
	LeasedUntil  time.Time // when the lease expires unless it is settled or extended
}

// TopicConfig is the configuration of a topic. The zero value of a limit means no limit.
type TopicConfig struct {
	Partitions   int32         // at least 1
	RetainAge    time.Duration // retention of settled messages; <0 is unlimited, 0 is none
	RetainBytes  int64         // retained bytes of settled messages; <0 is unlimited, 0 is none
	TTL          time.Duration // age at which unacknowledged messages are settled
	BacklogBytes int64         // maximum backlog of a subscription in bytes
	BacklogEvict bool          // over BacklogBytes: true settles the oldest, false rejects with ErrBacklogFull
	Deduplicate  bool          // drop messages whose DedupKey was used before
	MaxUnacked   int           // maximum leased messages per subscription; Receive waits at the limit
	Terminated   bool          // appends are rejected with ErrTerminated
}

// SubscriptionConfig is the configuration of a subscription.
type SubscriptionConfig struct {
	Lease           time.Duration     // default lease; 0 means DefaultLease
	MaxDeliveries   uint32            // deliveries before a message becomes a dead letter; 0 for no limit
	DeadLetterTopic TopicID           // topic of the dead letters (partition 0); required with MaxDeliveries
	Properties      map[string]string // free-form
	// Filter selects the messages that Receive delivers; "" for all. The engine does not interpret
	// it: the Selector does.
	Filter string
}

// DefaultLease is the lease when neither the consumer nor the subscription sets one.
const DefaultLease = 30 * time.Second

// PositionKind determines which fields of a Position apply.
type PositionKind uint8

// The kinds of positions in a topic.
const (
	Latest   PositionKind = iota // after the last durable message
	Earliest                     // at the first message that is not trimmed
	// at Position.ID, inclusive, on its partition; other partitions stay (earliest on create)
	AtID
	AfterID  // after Position.ID on its partition; other partitions as with AtID
	AtTime   // at the first message published at or after Position.Time, in milliseconds
	SkipN    // after the next Position.Count unsettled messages; reset only
	SkipTime // after messages published before Position.Time, never backwards; reset only
)

// Position is a position in a topic, to which a subscription is set.
type Position struct {
	Kind  PositionKind
	ID    MessageID
	Time  time.Time
	Count uint64
}

// AllPartitions makes a Read or Receive cover every partition of the topic.
const AllPartitions int32 = -1

// ReceiveRequest is the request of a consumer for messages.
type ReceiveRequest struct {
	Max       int           // maximum number of messages to lease; at least 1
	MaxBytes  int           // stop adding messages past this many bytes of Weight; 0 for no limit
	Wait      time.Duration // how long to wait for the first message; 0 does not wait
	Lease     time.Duration // 0 means the lease of the subscription
	Partition int32         // one partition, or AllPartitions
}

// ReadRequest selects the messages that Read returns.
type ReadRequest struct {
	Partition int32
	From      uint64 // first entry
	// with AllPartitions: first entry of each partition, 0 for those not listed; nil means From
	FromEach     []uint64
	Since        time.Time     // if set: only messages published at or after this time
	Subscription string        // if set: only messages that this subscription has not acknowledged
	Max          int           // maximum number of messages; at least 1
	MaxBytes     int           // stop past this many bytes of Weight; 0 for no limit
	Wait         time.Duration // how long to wait for the first message
}

// Action is what a consumer does with a message.
type Action uint8

// The actions.
const (
	Ack     Action = iota // acknowledge it durably
	AckTo                 // acknowledge it and every message before it on its partition
	Nack                  // redeliver it after Settlement.Delay; ErrLeaseEnded without a current lease
	Extend                // extend the lease to Settlement.Delay from now; ErrLeaseEnded without a current lease
	Release               // redeliver it immediately; does nothing without a current lease
	Accept                // acknowledge it durably; ErrLeaseEnded without a current lease
	// Reject moves it to the dead-letter topic, or acknowledges it if the subscription has none, durably;
	// ErrLeaseEnded without a current lease. If the move fails, the message is redelivered.
	Reject
	// Return ends the lease without counting a delivery, for a message that no consumer got; does nothing without a
	// current lease.
	Return
)

// Settlement is one action on one message.
type Settlement struct {
	ID     MessageID
	Action Action
	Delay  time.Duration
	// Delivery identifies the lease: that of the delivery with Redeliveries+1 == Delivery.
	// All actions but Ack and AckTo require this lease to be current.
	// 0 means the current lease. After an earlier lease of the message has expired, 0 matches
	// no lease, because the consumer of the expired lease may have sent the settlement.
	Delivery uint32
}

// PartitionStats are the statistics of one partition.
type PartitionStats struct {
	First       uint64 // first entry that is not trimmed
	Next        uint64 // first entry that is not durable yet
	Bytes       int64  // stored bytes
	LastPublish int64  // publish time of the last message, epoch milliseconds; 0 for never
}

// CursorStats are the statistics of a subscription on one partition.
type CursorStats struct {
	Floor uint64 // every entry below is acknowledged
	Acked uint64 // number of acknowledged entries at or above Floor
}

// SubscriptionStats are the statistics of one subscription.
type SubscriptionStats struct {
	Name         string
	Config       SubscriptionConfig
	Cursors      []CursorStats // by partition
	Backlog      uint64        // messages not acknowledged
	BacklogBytes int64
	Leased       uint64 // delivered and not settled
	Delayed      uint64 // messages that are not due yet
	Waiting      int    // calls that wait in Receive
	Redelivered  uint64 // redeliveries since the engine was opened
	Filtered     FilterCounts
}

// FilterCounts are the messages for which the filter of a subscription was evaluated since the engine was
// opened.
type FilterCounts struct {
	Selected   uint64 // delivered
	PassedOver uint64 // acknowledged without a delivery
	Failed     uint64 // delivered because the evaluation failed; included in Selected
}

// TopicStats are the statistics of one topic.
type TopicStats struct {
	Config        TopicConfig
	Partitions    []PartitionStats
	Subscriptions []SubscriptionStats // by name
}
