// Package engine defines the interface between Freshet's domains and the store of
// one cluster's data: topic logs, subscriptions and journals. It is the contract that
// every store implements and that every domain relies on.
//
// The package owns values, sentinel errors and small interfaces, and no behaviour.
// Names, tenants, policies and schemas belong to the callers, broker/messaging and
// registry/schemas: an engine identifies a topic by its number and never interprets a
// payload. storage/pebble implements the contract on one disk, ensemble/sharded over the
// shards of an ensemble. storage/enginetest is the conformance suite that every engine
// must pass.
//
// Every engine guarantees:
//
//   - Durable before acknowledged. When a call that writes returns nil, a power failure
//     immediately afterwards does not lose the write. Leases are the exception: they
//     exist in memory only, and end when the engine is closed or crashes.
//   - Durable before visible. No caller reads or receives a message, a topic or a journal
//     record that a crash could still lose.
//   - Ordered. Messages of a partition have consecutive entry numbers in the order in
//     which they were appended. An entry number is never used twice, and publish times
//     never decrease within a partition.
//   - A failed write is final. After it the engine acknowledges nothing: every call
//     returns ErrFailed (ErrNotOwner when the engine lost its replicated log), and Health
//     reports the cause.
//   - Cancellation is safe. When the context of a Receive ends, its leases are released
//     immediately and do not count as deliveries. When the context of a write ends while
//     the write is becoming durable, its outcome is unknown to the caller: the write may
//     still succeed.
//
// All methods may be called concurrently. A call whose context has ended already returns
// the context's error and does nothing.
package engine

import (
	"context"
	"io"
)

// Engine is the store of one cluster.
type Engine interface {
	Topics
	Log
	Batches
	Subscriptions
	Statistics

	// Journal opens the named journal and creates it if it does not exist.
	Journal(ctx context.Context, name string) (Journal, error)
	// Checkpoint writes a consistent copy of the whole store to a directory that does not
	// exist yet. The copy contains every write that was acknowledged before the call, and
	// of concurrent writes those up to one point in time. It can be opened as a store.
	Checkpoint(ctx context.Context, dir string) error
	// SelectWith sets the Selector. There is one; until it is set, Receive returns ErrNoSelector
	// for subscriptions with a filter.
	SelectWith(s Selector)
	// Health returns nil while the engine keeps its guarantees, and otherwise the cause.
	Health() error
	// Close ends waiting calls with ErrClosed, flushes and closes the store.
	Close() error
}

// Topics creates, configures, deletes and describes topics.
type Topics interface {
	// CreateTopic creates a topic, or returns ErrTopicExists. The caller chooses the id
	// and never reuses it, not even after DeleteTopic.
	CreateTopic(ctx context.Context, id TopicID, config TopicConfig) error
	// ConfigureTopic replaces the topic's configuration. The number of partitions may
	// grow but not shrink; every subscription starts at the beginning of a new partition.
	ConfigureTopic(ctx context.Context, id TopicID, config TopicConfig) error
	// DeleteTopic deletes the topic with its messages and subscriptions. Calls that wait
	// for the topic return ErrNoTopic.
	DeleteTopic(ctx context.Context, id TopicID) error
	// DescribeTopic returns exact statistics of the topic and its subscriptions.
	DescribeTopic(ctx context.Context, id TopicID) (TopicStats, error)
	// ListTopics returns up to limit ids greater than after, in ascending order.
	ListTopics(ctx context.Context, after TopicID, limit int) ([]TopicID, error)
}

// Log appends messages to partitions and reads them.
type Log interface {
	// Append appends msgs to one partition, in order, all or none, and returns one result
	// per message once all of them are durable. The engine does not retain msgs.
	Append(ctx context.Context, id TopicID, partition int32, msgs []Message) ([]Appended, error)
	// Read returns durable messages and leaves subscriptions unchanged. Messages before a
	// damaged one are returned without an error; a Read that starts at the damaged message
	// returns a *DamagedMessage error.
	Read(ctx context.Context, id TopicID, req ReadRequest) ([]Record, error)
}

// Subscriptions leases messages to consumers and stores their acknowledgements.
type Subscriptions interface {
	// CreateSubscription creates a subscription at a position, or returns
	// ErrSubscriptionExists.
	CreateSubscription(ctx context.Context, id TopicID, name string, config SubscriptionConfig, at Position) error
	// ConfigureSubscription replaces the subscription's configuration.
	ConfigureSubscription(ctx context.Context, id TopicID, name string, config SubscriptionConfig) error
	// DeleteSubscription deletes the subscription and its acknowledgements. Calls that
	// wait for its messages return ErrNoSubscription.
	DeleteSubscription(ctx context.Context, id TopicID, name string) error
	// ResetSubscription moves the subscription to a position. On the partitions that it
	// moves, it discards the leases and the acknowledgements at or after the position.
	// SkipN and SkipTime only move forward, and keep later leases and acknowledgements.
	ResetSubscription(ctx context.Context, id TopicID, name string, at Position) error
	// Receive leases messages to the caller. It returns as soon as at least one message is
	// available, or an empty result after req.Wait. A damaged message is leased and
	// withheld; only when no other message is available does Receive return its
	// *DamagedMessage error.
	//
	// If the subscription has a filter, Receive acknowledges the messages that the Selector
	// passes over, durably before it waits or returns without messages. It does not evaluate
	// messages that were delivered before. It reads until a message is selected or req.Wait ends,
	// and at least once for a short time; then it may return none although messages are left.
	// No message is passed over by a filter after ConfigureSubscription has replaced it.
	Receive(ctx context.Context, id TopicID, name string, req ReceiveRequest) ([]Delivery, error)
	// Settle applies acknowledgements, negative acknowledgements and lease extensions in
	// order, and returns once the acknowledgements are durable. It checks all of them
	// first: when one names an unknown message or a lease that has ended, none is applied.
	Settle(ctx context.Context, id TopicID, name string, settlements []Settlement) error
}

// Journal is a linearizable list of small records with optimistic concurrency: a writer
// names the position that it has read up to, and its append fails when another writer was
// faster. Package statemachine builds replicated state on it. Positions start at 1; 0 is
// the position before the first record.
type Journal interface {
	// Append appends records after the position after, all or none, and returns the
	// position of the last one once they are durable. When the journal has records after
	// that position, Append writes nothing and returns ErrConflict. A position beyond the
	// end of the journal is ErrInvalid.
	Append(ctx context.Context, after uint64, records ...[]byte) (last uint64, err error)
	// Replay calls visit for every durable record after a position, in order, and returns
	// the last position that it visited, or after when there is none. When a snapshot has
	// replaced some of these records, Replay returns ErrCompacted. An error of visit ends
	// the replay. The record is valid only during the call of visit.
	Replay(ctx context.Context, after uint64, visit func(position uint64, record []byte) error) (last uint64, err error)
	// Last returns the position of the last durable record of the whole cluster at some
	// moment during the call.
	Last(ctx context.Context) (uint64, error)
	// Wait returns nil as soon as a durable record after the position exists.
	Wait(ctx context.Context, after uint64) error
	// SaveSnapshot durably replaces the previous snapshot with the state as of a position,
	// and lets the engine delete the records up to it. It does nothing when the stored
	// snapshot has a later position.
	SaveSnapshot(ctx context.Context, position uint64, write func(io.Writer) error) error
	// LoadSnapshot opens the latest snapshot. Without a snapshot it returns position 0 and
	// a nil reader. The caller closes the reader, which stays valid when a newer snapshot
	// is saved.
	LoadSnapshot(ctx context.Context) (position uint64, state io.ReadCloser, err error)
}
