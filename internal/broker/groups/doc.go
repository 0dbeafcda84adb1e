// Package groups is the coordinator of Kafka consumer groups: the members of each group, its
// current generation, its leader, the assignment of each member, and the committed offsets.
//
// The package owns that state and its rules (docs/spec/stream.md#groups). It does not encode or
// decode requests (kafkaapi), and it identifies a topic only by its incarnation number, so that a
// topic that is deleted and created again starts without offsets. Subscriptions, with which HTTP
// consumers share messages, are independent of groups and belong to package messaging.
//
// A group uses one of two protocols. In the classic protocol the members join for a generation, and
// their leader assigns partitions. In the consumer protocol (KIP-848) the coordinator assigns: a
// member's heartbeat contains its subscription and the partitions that it owns. When members,
// subscriptions or topics change, the group's epoch increases and an assignor computes a target
// assignment for every member. Each member then moves to its target: it first revokes the
// partitions outside of it, then gets the partitions that no other member owns any more, and with
// them the epoch of the target. Each heartbeat passes the required information about topics
// (Topics).
//
// A classic group of consumers takes members with the consumer protocol and changes to it; its
// classic members then join, synchronise and send heartbeats in that group (classicmembers.go). The
// group is classic again when the last member with the consumer protocol leaves (migrate.go). For
// that the coordinator looks into the metadata of classic members, with ClassicCodec.
//
// A member belongs to the principal that joined with its id. Which callers may use a group depends on the
// topics that it reads: the coordinator knows them, and the caller decides (Caller, Reads).
//
// Share groups (KIP-932) are apart: a share group has only members, epochs and assignments, all of them in memory
// (shares.go). Its messages, leases and acknowledgements are those of subscriptions, in package messaging.
//
// Committed offsets, and the generation of every stable group, survive a restart: they are state
// machines over sixteen journals (package statemachine). A group is always in the same journal, and
// commits of groups in different journals are appended in parallel. Classic joins, and heartbeats
// that change nothing, are not stored. Of a group with the consumer protocol every change is
// stored, as the members that have changed, before any member learns of it. After a restart a group
// with a stored generation is stable, and its members have a full session timeout to send a
// heartbeat: they need not join again.
//
// # Locks
//
//	lock             protects
//	shard.mu         the map of a shard's groups in memory. Not held while waiting.
//	group.mu         the state of one group in memory. Not held while waiting: writeLocked
//	                 and awaitWriteLocked release it during a write to the journal, after
//	                 which their callers must check the state again.
//	shares.mu        all share groups. Not held while waiting.
//	producerIDs.mu   the blocks of producer ids in use. Held while the next block is written
//	                 to the journals.
//
// No goroutine holds two of these locks at a time. With each of them the lock of package quota may be
// taken. Caller.May is called with group.mu held, or by a journal's update; it must not block, and it takes
// only locks of its own. A group with removed set is no longer in its shard's map; a caller that has locked
// such a group must look it up again (shard.lock does).
//
// # Quotas
//
// What clients create counts towards the quotas of the account that creates it (Options.Quota,
// usage.go). The journals store the accounts (accounts.go), so that a restart counts the same. A
// producer id belongs to the account that requested it (producerids.go).
//
// # Timers
//
// A group with deadlines has one timer, set to the earliest of them: the end of a phase of a
// rebalance, of a member's session, or of the time to revoke partitions. A heartbeat moves a
// deadline without changing the timer; a timer that fires too early is set again.
package groups
