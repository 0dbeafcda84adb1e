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
// # Parts
//
// Broker composes parts. Each is a field of Broker, has state and files of its own, and uses the engine
// only through the interface that it needs:
//
//	field       part           owns                                     engine        first file
//	Catalogue   Catalogue      tenants, namespaces, topics, policies    Topics        catalogue.go
//	Grants      ClusterGrants  an index of the catalogue's permissions  none          granted.go
//	Schemas     TopicSchemas   the versions of topics' schemas          none          schema.go
//	Producer    Producer       routing of messages to partitions        Log           produce.go
//	Consumer    Consumer       subscriptions, deliveries, readers       Subscriptions consume.go
//	Kafka       KafkaLog       batches, offsets, idempotent producers   Batches       kafkalog.go
//	Searcher    Searcher       searches with expressions                Batches       search.go
//	Replayer    Replayer       sends dead letters again                 none          replay.go
//	Statistics  Statistics     statistics of topics, usage              Statistics    stats.go
//
// Broker itself opens, drains and closes the whole, and follows the ownership of shards. The surfaces get
// the parts, or interfaces of their own that a part implements, and never the broker.
//
// The parts share four things: engineTopics keeps the engine's topics equal to the catalogue and repairs
// a topic that the engine lacks (withTopic is the only place); liveTopics holds what a topic has in
// memory only; admission decides which records a topic accepts; lifecycle ends waits and background
// work. Producer, Consumer and KafkaLog depend on Catalogue, and none of these depends on another of
// them. Catalogue depends on no other part.
//
// # Locks
//
// Reads of the catalogue take no lock: a published state is immutable, and package statemachine
// serializes changes. The other state is protected by:
//
//	lock                  part          protects
//	producerTable.mu      KafkaLog      the idempotent producers of one partition. Held while the
//	                                    table is loaded, and while a batch is checked and passed
//	                                    to the engine; not while the batch becomes durable.
//	engineTopics.locks    Catalogue     the engine's configuration of a topic, so that of two
//	                                    concurrent changes the newest rules remain. 64 stripes by
//	                                    topic id; held during the engine's write, never two
//	                                    stripes at a time.
//	Consumer.configuring  Consumer      the configuration of a subscription, from reading it to the end of
//	                                    the engine's write. 16 stripes by topic id, never two at a time.
//	cachedFilter.mu       Searcher      the idle evaluators of a filter of subscriptions. A leaf.
//	liveSubscription.mu   Consumer      the open push consumers of a subscription.
//	PushConsumer.mu       Consumer      the messages that a push consumer has not settled.
//	meter.mu              Statistics    the rates of one meter.
//	lru.Cache.mu          admission     the cache of parsed schemas.
//
// Locks are taken in this order, each is optional: producerTable.mu, a stripe of Consumer.configuring, a
// stripe of engineTopics.locks, liveSubscription.mu, PushConsumer.mu. meter.mu, lru.Cache.mu and
// cachedFilter.mu are leaves. Only one path crosses parts: an append of KafkaLog that finds the topic
// missing in the engine repairs it, under producerTable.mu and then a stripe of engineTopics.locks.
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
