// Package sharded implements the engine of a cluster whose topics are distributed over
// shards, each of which is owned by one member of an ensemble at a time.
//
// A topic belongs to the shard with the number topic id modulo number of shards. Every call
// goes to the owner of that shard: directly to its engine when this member is the owner,
// else over the internal listener (package remote). While the shard has no owner, a call
// waits up to Options.OwnerTimeout and then fails with engine.ErrNoOwner. A call is retried when
// nothing can have happened, when it only reads, or when it waited for messages at an owner
// that gave up the shard. For any other call with an unknown outcome the caller gets the
// error.
//
// A dead letter topic may be in another shard than its subscription. Then the copy is
// durable before the message is acknowledged, and a crash in between creates a second copy.
// In the same shard both are one write.
//
// State that belongs to no topic:
//
//   - ListTopics queries every shard. Usage, DamagedMessages and Disk cover this member
//     alone, so that the members' figures add up. Totals cover the whole cluster; those of
//     other members are a few seconds old.
//   - A journal belongs to all members (Options.Journals), except those of consumer
//     groups: groups-NN is in the store of shard NN modulo number of shards, and only the
//     owner of that shard can open it.
//   - Checkpoint copies the shards that this member has, or fetches those of which it has
//     no copy, each into a directory of its own.
//
// Package replicated, below, implements replication, epochs and the election of owners. The
// server, above, forwards requests of clients to the owner, so most calls here are local.
//
// # Locks
//
//	clusterTotals.mu  the cached totals of shards that other members own, and whether a
//	                  refresh is running. Never held over a call.
//
// Close cancels Engine.ctx with clusterTotals.mu held, so no refresh starts afterwards, and
// Engine.work.Wait sees every refresh. Everything else is immutable or atomic.
package sharded
