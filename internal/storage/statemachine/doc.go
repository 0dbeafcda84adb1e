// Package statemachine drives a state machine over an engine.Journal: it replays
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
//
// # Locks
//
// Two, and they are never held together:
//
//	Machine.writing  the right to move Machine.current forward. A channel of
//	                 capacity 1, so that a waiting caller can give up with its
//	                 context. Held by commit from the decisions until their
//	                 records are durable, by the tail and by a read barrier while
//	                 they catch up. Open needs none: nobody else has the machine.
//	barriers.mu      which read barrier runs and who waits for the next; held for
//	                 moments.
//
// Everything else is atomic (current, broken, grown, snapshotSize) or belongs to
// one goroutine at a time: an update is its caller's until it is sent, then the
// commit loop's until its done is closed.
//
// # What holds
//
//  1. current only moves forward, and each published state is exactly the records
//     up to its position. Only the holder of writing stores it.
//  2. A published state is never changed. Decisions and records change a clone,
//     and the clone is published when its records are durable. Clone is called
//     under writing, so never twice at once; readers and a snapshot may look at
//     the original meanwhile.
//  3. A decision is applied to the state it was taken on: the journal takes the
//     records only behind that state's position (engine.ErrConflict otherwise,
//     and then everybody of the batch decides again after catching up). A batch
//     without records asks the journal for its end instead, so that a refusal
//     never rests on a state that another replica has left behind.
//  4. When an append fails, nothing is published and nothing is known: if its
//     records became durable after all, the tail brings them, and the next append
//     loses until they are applied. Who wrote in that batch, or decided on top of
//     such a write, gets the failure.
//  5. A record that cannot be applied stops the replica's writes for good (broken)
//     and leaves the last published state in place; a clone that failed half way
//     is never published.
//  6. Fresh is linearizable: it reads the journal's end after its caller came and
//     returns when the state has reached it. Whoever comes while a barrier runs
//     waits for the next one, which starts after they came.
package statemachine
