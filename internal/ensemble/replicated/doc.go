// Package replicated implements a shard of a cluster in an ensemble: an engine whose
// write-ahead log is a JetStream stream that all members with a copy follow.
//
// The package owns the log (one stream per shard), the election of the owner that may write
// it, the copies, and the creation of new copies. The engine itself is package pebble.
// JetStream provides consensus and replication; etcd stores who owns what. Package sharded,
// above, routes calls to owners; package membership provides the lease.
//
//	owner                              standby
//	engine ──batch──► log (stream) ──► follower ──► store
//	   ▲                 │ acknowledged by a majority, synced
//	   └── store ◄───────┘
//
// How it works, in the order of the files:
//
//   - record.go: a message of the log: a part of a batch of writes, or the beginning of an
//     ownership (epoch record). Each contains a running checksum of the log up to it.
//   - pack.go: batches are compressed before they are appended to the log.
//   - stream.go, query.go: the stream of a shard, its identity, whether a store matches it,
//     and queries to its leader.
//   - writer.go, ask.go, resolve.go: the owner's appends. Each names the sequence that it
//     expects to be the last one, so that no other member can have written in between. When
//     an append is not acknowledged, the writer asks the leader whether it has arrived, and
//     sends it again only when it has not. metrics.go counts both.
//   - follow.go: a standby applies the log to its store.
//   - ownership.go, run.go: a key in etcd, bound to the member's lease, selects the member
//     that may try to own the shard; the log decides. The member with the key reads the log
//     to its end and appends an epoch record. From then on every append of an older owner
//     fails, whatever its clock and its lease say.
//   - holders.go: which members have a copy.
//   - upkeep.go: members flush their stores and publish their positions in etcd, and the
//     owner purges the part of the log that all copies have flushed.
//   - mark.go, marks.go: each member records the last position that the log has acknowledged to it,
//     and publishes it in etcd. A member that takes over compares the log with all of them.
//   - rebuild.go: a log that has lost acknowledged writes is rebuilt from a copy that has them.
//   - checkpoint.go, fetch.go: a new copy starts from a checkpoint of another member's. Both
//     members verify all of its blocks.
//   - verify.go: the tables of a copy are verified after anything but a clean stop, and
//     periodically.
//   - compare.go, comparer.go: the copies compare their contents, range by range, at the same
//     position of the log.
//   - damage.go: a damaged copy is closed and replaced by that of another member.
//   - suspect.go: a record that does not verify is read at the other replicas of the log, and the
//     servers of bad replicas verify their files.
//   - loss.go, accept.go: how an operator continues a shard whose copies and log do not
//     match.
//   - seed.go: a shard that starts with the content of another server.
//
// # Invariants
//
//  1. A store contains the log up to its position, nothing else and nothing twice: the
//     position is written with the batch, atomically.
//  2. A message of the log is immutable: its sequence, its epoch and its content belong
//     together forever.
//  3. Every acknowledged write is in the log, because the log acknowledges it.
//  4. A message counts if and only if it has the next index of the newest epoch. Every
//     reader of the log decides this in the same way (record.continues).
//  5. An owner serves reads only while its lease is valid by the monotonic clock
//     (Lease.Alive). Its writes depend on no clock.
//  6. Only the owner changes the list of members with a copy, in a transaction that
//     requires its owner key. A member acquires the owner key in a transaction that
//     requires the list that it knows. So a member without a copy never becomes the owner.
//  7. The log is purged up to the smallest flushed position of the copies that count, and
//     never beyond it. A copy that is not verified, or damaged, has flushed nothing.
//  8. A member has recorded the position of a write before it acknowledges the write (mark). A
//     member that takes over serves only if its log contains every published mark.
//  9. A damaged copy is dropped only when its replacement is verified on the same disk, or
//     when the log has all messages. It never serves.
//  10. A copy is damaged by comparison only if more than half of all copies, without those that were fetched
//     since the last comparison, have another content at exactly its position, twice.
//
// # Locks
//
//	checkpoints.createMu  one checkpoint for other members is created or verified at a
//	                      time. Held over file operations.
//	Shard.storeMu         RWMutex: Shard.store. Only the run goroutine replaces the store,
//	                      with the write lock; Close does after run has ended. Other
//	                      goroutines use the store with the read lock; the run goroutine
//	                      uses it without. Held over file operations, such as the
//	                      verification of one table, and over one call of etcd when a copy
//	                      is removed.
//	Shard.mu              the fields below it in Shard: role, engine, writer, view, verified
//	                      and the channel changed, which is closed and replaced with every change
//	                      (changeLocked). Never held over a call.
//	checkpoints.mu        checkpoints.all, and the use of its elements. Never held over a
//	                      call.
//	suspicions.mu         which records no replica has; a leaf. Never held over a call.
//	mark.mu               the mark and its file. Held over a write to the file, not over a sync.
//	writer.mu             the queue of appends; end, known, next, sends, flow and holding; the
//	                      attempt of each entry. Held while the NATS client buffers a message,
//	                      never while waiting for an acknowledgement.
//
// Order: checkpoints.createMu, then Shard.storeMu, then one of Shard.mu and checkpoints.mu.
// Shard.mu, checkpoints.mu, mark.mu and writer.mu are leaf locks; no two of them are held together.
// The engine's commit goroutine calls writer.Append, so writer.mu comes after any lock of the
// engine; the writer never calls the engine.
// Options.Ownership is called without a lock.
//
// Not protected by a lock, because one goroutine uses them: mismatched, endLost, acceptedTried, damage and the
// follower (run), the upkeeper (upkeep), the comparer (compareLoop). writer.known is written with
// writer.mu by the writer's own goroutine only, which therefore reads it without; inquired of an entry
// and writer.reopened are of that goroutine as well. applied, end, bytes and copies of Shard
// are atomic.
package replicated
