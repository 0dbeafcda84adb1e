// Package sharded is the engine of a cluster whose topics are spread over shards,
// each of which one member of a group owns at a time.
//
// A topic belongs to the shard that is its id modulo the number of shards. Every
// call goes to the owner of that shard: straight to its engine when that is this
// member, else over the internal listener (package remote). While nobody owns the
// shard a call waits a little (Options.Wait) and then fails with
// engine.ErrNoOwner. A call is made again when nothing can have happened, when it
// only reads, or when it waited for messages at an owner that gave the shard up;
// after an unknown outcome of anything else the caller is told.
//
// A dead letter topic may be in another shard than the subscription. Then the copy
// is durable before the message is acknowledged, and a crash in between makes a
// second copy; in the same shard both are one write.
//
// What belongs to no topic:
//
//   - ListTopics asks every shard. Usage, DamagedMessages and Disk are of this
//     member alone, so that the members' figures add up; Totals are of the whole
//     cluster, those of other members as they were a few seconds ago.
//   - A journal belongs to all members (Options.Journals), except those of consumer
//     groups: groups-NN is in the store of shard NN modulo the number of shards, and
//     only its owner can open it.
//   - Checkpoint copies the shards as this member has them, or fetches those of which
//     it has no copy, each into a folder of its own.
//
// Replication, epochs and who becomes an owner are below (package replicated);
// what clients of the service send is forwarded above and seldom comes here.
package sharded
