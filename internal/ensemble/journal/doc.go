// Package journal keeps journals on NATS JetStream, so that every member of a
// group can write them and each has the same state machines: engine.Journal over
// one stream per journal, replicated and synced.
//
// It owns the mapping from journals to streams, what a lost answer means, and
// snapshots. It does not know what a record is, nor who runs the servers: package
// natsserver does, or somebody else's NATS.
//
// # Streams
//
//	J_<cluster>_<journal>  the journal. Subject freshet.journal.<cluster>.<journal>.r
//	                       carries records, .s says which snapshot is the latest.
//	J_<cluster>            the chunks of snapshots, subject
//	                       freshet.snapshot.<cluster>.<journal>.<snapshot>.
//
// A message carries all records of one append, so that they are there together or
// not at all. Positions count records and sequences count messages, therefore each
// message says which positions it has (message.go); a snapshot's message has none
// and repeats the last one. The last message of a stream is never purged, and so
// always says where the journal ends.
//
// # What holds
//
//  1. Every message is published on condition that the stream ends where its
//     writer believes it does (Nats-Expected-Last-Sequence). The leader checks that
//     before it proposes, and each replica again when it applies, so of two writers
//     one gets the place. What is acknowledged is on the disks of a majority.
//  2. A publish without an answer is in doubt. Its place is read, from the leader:
//     if it is ours it succeeded, if it is another's it did not and never will. If
//     the place is still free the same message is published again on the same
//     condition, so that it can be there once at most.
//  3. ErrConflict is returned when the record that was faster can be read, from any
//     member, since every read goes on to the leader when a replica is behind.
//  4. Last is linearizable. A server that was the leader believes so for up to ten
//     seconds after it was cut off, and answers reads meanwhile. So Last first has
//     the leader commit an entry that changes nothing (a purge up to the first
//     sequence), then asks for the end, and takes the answer only if a majority has
//     talked to the server that gave it since Last was called. A minority gets
//     engine errors of the kind unavailable, and never an old answer.
//  5. Replay returns all records that the leader has, and at least everything that
//     an earlier call on the same journal has revealed. Content at a sequence never
//     changes, so it is read from the nearest replica.
//  6. A snapshot is whole before the message that makes it the latest, which is
//     conditional as records are, so that an older one never replaces a later one.
//     Records up to it are purged after that. The snapshot before it is kept, for
//     who is reading it.
//
// # Sizes
//
// An append has to fit into one message: what the servers allow (16 MiB embedded,
// 8 MiB at least) less one KiB. A larger one is engine.ErrTooLarge and writes
// nothing. Snapshots have no bound but the store's.
//
// # Locks
//
//	journal.appending  one publish to the journal at a time; a channel, so that a
//	                   waiting caller can give up. Never taken while holding mu.
//	journal.saving     one snapshot at a time, taken before appending.
//	journal.mu         what is known of the stream; held for moments.
//	Journals.mu        the open journals; held for moments, never with journal.mu.
package journal
