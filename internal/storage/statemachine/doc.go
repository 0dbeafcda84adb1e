// Package statemachine runs a replicated state machine over an engine.Journal: it replays the
// journal into memory, follows the records that other replicas append, and appends the records
// of its own updates in batches, with optimistic concurrency.
//
// It owns the life cycle of the state (snapshot, replay, publish), the write path and the read
// barrier. It does not interpret records: broker/messaging keeps its catalogue in a machine,
// broker/groups its consumer groups, and registry/schemas its subjects. The engine makes
// records durable.
//
// Reads take no lock: a state is an immutable value behind an atomic pointer. Writes have no
// leader: a writer decides on the state that it has applied, appends on the condition that the
// journal has not grown, and decides again after a conflict.
//
// # Locks
//
// There are two, and they are never held together:
//
//	Machine.writing  the right to replace Machine.current. A semaphore channel of capacity 1,
//	                 so that a waiting caller can stop when its context ends. commit holds
//	                 it from the decisions until their records are durable; the tail and a
//	                 read barrier hold it while they catch up. Open needs no lock, because
//	                 no other goroutine uses the machine yet.
//	barriers.mu      the running read barrier and the call that waits for the next one; held
//	                 briefly.
//
// Everything else is atomic (current, broken, appliedBytes, snapshotSize) or belongs to one
// goroutine at a time: an update belongs to its caller until it is sent, then to the commit
// loop until its done is closed.
//
// # Invariants
//
//  1. current only moves forward, and each published state is the result of exactly the
//     records up to its position. Only the holder of writing stores it.
//  2. A published state is never changed. Decisions and records change a clone, and the
//     clone is published when its records are durable. Clone is called under writing, so
//     never concurrently; readers and a snapshot may use the original meanwhile.
//  3. The records of a decision are applied to the state on which it was made: the journal
//     accepts them only directly after that state's position. Otherwise it returns
//     engine.ErrConflict, and all updates of the batch are decided again after catching up.
//     A batch without records reads the end of the journal instead, so that a rejected
//     update was never decided on an outdated state.
//  4. When an append fails, nothing is published and its outcome is unknown. If its records
//     became durable nevertheless, the tail applies them, and appends conflict until then.
//     The updates of that batch that wrote, or were decided after such a write, get the
//     error.
//  5. A record that cannot be applied stops the replica's writes permanently (broken) and
//     keeps the last published state; a clone that was changed partially is never
//     published.
//  6. Fresh is linearizable: it reads the journal's end after it was called and returns
//     when the state has reached it. A call during a barrier waits for the next barrier,
//     which starts after the call.
package statemachine
