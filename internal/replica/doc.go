// Package replica drives a state machine over an engine.Journal: it replays
// the journal into memory, follows what other replicas append, and turns
// decisions into records with an optimistic, grouped append.
//
// It owns the life cycle of the state (snapshot, replay, publish), the write
// path and the read barrier. It does not know what a record means: messaging
// keeps its catalogue with it and schemas its registry. What makes a record
// durable is next door, in engine.
//
// Reads are lock-free: a state is an immutable value behind an atomic pointer.
// Writes have no leader: a writer decides on the state it has applied, appends
// on condition that nobody was faster, and decides again when it lost.
package replica
