// Package messaging is the broker of one cluster (docs/spec/messages.md): tenants, namespaces and
// their policies, topics, subscriptions, producing, consuming, acknowledging, and the schemas of
// topics.
//
// It owns the catalogue, a state machine over one journal of the engine that records which tenants,
// namespaces and topics exist and their policies. It also owns the rules: which partition a message
// goes to, which payloads match a schema, when a message becomes a dead letter. It does not speak
// HTTP (messageapi, adminapi) or the Kafka protocol (kafkaapi), and does not authenticate callers
// (identity, access). It stores no messages: logs, leases and acknowledgements are the engine's
// (storage/engine). The schema registry is package schemas; the broker only checks whether a
// subject has a schema id (SchemaRegistry).
//
// # Locks
//
// Reads of the catalogue take no lock: a published catalogue is immutable, and package statemachine
// serializes changes. The other state is protected by:
//
//	lock                  protects
//	producerTable.mu      the idempotent producers of one partition. Held while the table is
//	                      loaded, and while a batch is checked and passed to the engine;
//	                      not while the batch becomes durable.
//	Broker.topicLocks     the engine's configuration of a topic, so that of two concurrent
//	                      changes the newest rules remain. 64 stripes by topic id; held
//	                      during the engine's write, never two stripes at a time.
//	liveSubscription.mu   the open push consumers of a subscription.
//	PushConsumer.mu       the messages that a push consumer has not settled.
//	meter.mu              the rates of one meter.
//	lru.Cache.mu          the cache of parsed schemas.
//
// Locks are taken in this order, each is optional: producerTable.mu, a stripe of topicLocks,
// liveSubscription.mu, PushConsumer.mu. meter.mu and lru.Cache.mu are leaves.
//
// # Invariants
//
//   - The catalogue is written before the engine. After a crash the engine may lack a topic, have a
//     deleted topic, or have old rules; reconcile, and repair on first use, correct that.
//   - A catalogue entry is never modified after it was published; a change replaces the entry.
//   - A producerTable may be ahead of the disk, never behind the engine's append order: with
//     producerTable.mu held, a batch is checked, passed to the engine, which assigns its offset
//     under its own lock, and recorded in the table. The engine adds that offset to the stored
//     state of the producer; it calls nothing of this package under its locks.
package messaging
