// Package replicated is a shard of a cluster in a group of members: an engine whose
// write-ahead log is a JetStream stream that all members with a copy follow.
//
// It owns the log (one stream per shard), who may write to it, the copies and how
// a new one begins. The engine itself is engine/pebble; consensus and replication
// are JetStream's, and etcd says who owns what.
//
//	owner                              standby
//	engine ──batch──► log (stream) ──► tail ──► store
//	   ▲                 │ acknowledged by a majority, synced
//	   └── store ◄───────┘
//
// How it works, in the order of the files:
//
//   - record.go: what a message of the log is: a part of a group's batch, or the
//     beginning of an ownership (epoch). Each carries a running checksum of the whole
//     log before it.
//   - pack.go: batches are packed before they go into the log.
//   - stream.go: the stream of a shard, its identity, and whether a store fits to it.
//   - writer.go, resolve.go: the owner's appends. Each names the sequence it expects
//     to be the last, so that nobody else can have written in between. What becomes
//     of one without an answer is found out by reading the log.
//   - follow.go: a standby applies the log to its store.
//   - ownership.go, run.go: a key in etcd under the member's lease says who may try
//     to own the shard; the log decides. Whoever wins the key reads the log to its
//     end and appends an epoch record: from then on every append of an older owner
//     fails, whatever its clock and its lease say.
//   - upkeep.go: stores are flushed, copies say in etcd how far, and the owner purges
//     the log up to what all of them have.
//   - checkpoint.go, fetch.go: a new copy begins with a checkpoint of another
//     member's.
//   - lease.go: whether the member's lease holds, by its own steady clock.
//
// What holds:
//
//  1. A store has the log up to its mark, nothing else and nothing twice.
//  2. A message of the log is written once: its sequence, its epoch and its content
//     belong together for ever.
//  3. What was acknowledged is in the log, since the acknowledgement comes from there.
//  4. An owner answers reads only while its lease holds by the steady clock; its
//     writes need no clock.
package replicated
