// Package messaging is the domain of docs/spec/messages.md: tenants, namespaces
// and their policies, topics, subscriptions, producing, consuming,
// acknowledging and the schemas of topics, for one cluster.
//
// It owns the catalogue, a state machine over one journal of the engine, which
// says what exists and under which rules; and it owns the rules themselves
// (who gets which partition, which payload fits which schema, what a dead
// letter is). It does not speak HTTP (that is messageapi), does not know who
// is calling (identity, access) and keeps no message itself: logs, leases and
// acknowledgements are the engine's. Registry schemas are next door in
// schemas; only the question "has this subject that id" crosses over.
//
// # Locks
//
// Reads and decisions take none: the catalogue is an immutable value, and package
// replica puts decisions in order. What is left:
//
//	Broker.topicLocks      a topic is told to the engine by one caller at a time,
//	                       each with the rules of that moment, so that the newest
//	                       rules stay. By topic id, 64 in all; held while the
//	                       engine writes, and never two at once.
//	liveSubscription.mu    the open streams of a subscription. Whoever holds it may
//	                       take Stream.mu, never the other way.
//	Stream.mu              the messages a stream's consumer has not settled.
//	meter.mu, lru.Cache.mu   rates and parsed schemas; leaves.
package messaging
