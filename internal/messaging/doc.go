// Package messaging is the domain of spec 2: tenants, namespaces and their
// policies, topics, subscriptions, producing, consuming, acknowledging and the
// schemas of topics, for one cluster.
//
// It owns the catalogue, a state machine over one journal of the engine, which
// says what exists and under which rules; and it owns the rules themselves
// (who gets which partition, which payload fits which schema, what a dead
// letter is). It does not speak HTTP (that is messageapi), does not know who
// is calling (identity, access) and keeps no message itself: logs, leases and
// acknowledgements are the engine's. Registry schemas are next door in
// schemas; only the question "has this subject that id" crosses over.
package messaging
