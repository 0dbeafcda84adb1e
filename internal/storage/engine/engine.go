// Package engine is the seam between Freshet's domains and the store that
// keeps a cluster's data: topic logs, subscriptions and journals.
//
// It owns values and small interfaces only. engine/pebble is the embedded
// engine, engine/enginetest the suite that every engine must pass. Names,
// tenants, policies and schemas live above, in messaging and schemas; an
// engine knows topics by number and never interprets a payload.
//
// What every engine promises:
//
//   - Durable before acknowledged. When Append, Settle or a journal's Append
//     returns nil, a power cut in the next instant loses nothing of it.
//   - Durable before visible. Nobody reads what could still be lost.
//   - A failed write is final: the engine stops acknowledging and Health says so.
//   - A cancelled call loses nothing: what it had leased is given back at once.
package engine

import (
	"context"
	"io"
)

// Engine is the whole data plane store of one cluster.
type Engine interface {
	Topics
	Log
	Runs
	Subscriptions
	Statistics

	// Journal opens the named journal, creating it when it is new.
	Journal(ctx context.Context, name string) (Journal, error)
	// Checkpoint writes a copy of everything to a directory that does not exist
	// yet: all that was acknowledged before the call, and of what comes during it
	// the part up to one moment. The copy can be opened as a store.
	Checkpoint(ctx context.Context, dir string) error
	// Health returns nil while the engine keeps its promises, and otherwise
	// what broke them.
	Health() error
	// Close stops waiting callers (they get ErrClosed), flushes and closes.
	Close() error
}

// Topics creates, changes, removes and describes topics.
type Topics interface {
	// CreateTopic makes a topic. The caller chooses the id and never uses it
	// again after DeleteTopic. Creating an existing topic returns ErrTopicExists.
	CreateTopic(ctx context.Context, id TopicID, config TopicConfig) error
	// ConfigureTopic replaces the topic's configuration. Partitions may grow,
	// never shrink; new partitions carry every subscription from their start.
	ConfigureTopic(ctx context.Context, id TopicID, config TopicConfig) error
	// DeleteTopic removes the topic, its subscriptions and its data.
	DeleteTopic(ctx context.Context, id TopicID) error
	// DescribeTopic returns exact statistics of the topic and its subscriptions.
	DescribeTopic(ctx context.Context, id TopicID) (TopicStats, error)
	// ListTopics returns up to limit ids greater than after, ascending.
	ListTopics(ctx context.Context, after TopicID, limit int) ([]TopicID, error)
}

// Log appends to and reads from a topic's partitions.
type Log interface {
	// Append writes msgs to one partition in order, all or none, and returns
	// their ids once they are durable.
	Append(ctx context.Context, id TopicID, partition int32, msgs []Message) ([]Appended, error)
	// Read returns durable messages without disturbing any subscription.
	Read(ctx context.Context, id TopicID, req ReadRequest) ([]Record, error)
}

// Subscriptions hands messages out under leases and keeps what was acknowledged.
type Subscriptions interface {
	// CreateSubscription makes a subscription at a position;
	// ErrSubscriptionExists when there is one of that name.
	CreateSubscription(ctx context.Context, id TopicID, name string, config SubscriptionConfig, at Position) error
	// ConfigureSubscription replaces the subscription's configuration.
	ConfigureSubscription(ctx context.Context, id TopicID, name string, config SubscriptionConfig) error
	// DeleteSubscription removes the subscription and its acknowledgements.
	DeleteSubscription(ctx context.Context, id TopicID, name string) error
	// ResetSubscription moves the subscription to a position and drops its
	// leases; what it acknowledged after that position is forgotten.
	ResetSubscription(ctx context.Context, id TopicID, name string, at Position) error
	// Receive leases messages to the caller: it returns as soon as there is
	// at least one, and with none after req.Wait.
	Receive(ctx context.Context, id TopicID, name string, req ReceiveRequest) ([]Delivery, error)
	// Settle applies acknowledgements, negative acknowledgements and lease
	// extensions in order, and returns once they are durable. When one of them
	// cannot be applied, none is.
	Settle(ctx context.Context, id TopicID, name string, settlements []Settlement) error
}

// Journal is an ordered log with one writer winning at a time: the base of
// every state machine above the engine. Positions start at 1; 0 is before the
// first record.
type Journal interface {
	// Append adds records behind position after, all or none, and returns the
	// position of the last one once they are durable. When the journal has
	// grown past after it writes nothing and returns ErrConflict.
	Append(ctx context.Context, after uint64, records ...[]byte) (last uint64, err error)
	// Replay calls visit for every durable record behind after, in order, and
	// returns the last position seen (after when there was none). It returns
	// ErrCompacted when records behind after are no longer kept. The record is
	// only valid during the call.
	Replay(ctx context.Context, after uint64, visit func(position uint64, record []byte) error) (last uint64, err error)
	// Last returns the position of the last durable record at some moment
	// during the call, as the whole cluster sees it.
	Last(ctx context.Context) (uint64, error)
	// Wait returns nil as soon as there is a durable record behind after.
	Wait(ctx context.Context, after uint64) error
	// SaveSnapshot durably stores the state as of a position in place of the
	// previous snapshot, and lets the engine drop the records up to it.
	SaveSnapshot(ctx context.Context, position uint64, write func(io.Writer) error) error
	// LoadSnapshot opens the latest snapshot; position 0 and a nil reader when
	// there is none. The caller closes the reader.
	LoadSnapshot(ctx context.Context) (position uint64, state io.ReadCloser, err error)
}
