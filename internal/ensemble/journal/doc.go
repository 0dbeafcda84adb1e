// Package journal implements engine.Journal on NATS JetStream: one replicated and synced
// stream per journal. Every member of an ensemble can write a journal, and all members
// build the same state machines from it.
//
// The package owns the mapping from journals to streams, the resolution of publishes
// without an acknowledgement, snapshots, the members' copies of journals, and rebuilding a
// journal from them (docs/adr/0050-journals-are-rebuilt-from-copies.md). It does not interpret records and does not run
// NATS servers: package natsserver does that, or the operator runs external NATS servers.
//
// # Streams
//
//	J_<cluster>_<journal>  the journal. Subject freshet.journal.<cluster>.<journal>.r
//	                       carries records, .s points to the latest snapshot, .f ends the
//	                       stream. A rebuilt journal is in a stream with a generation,
//	                       J_<cluster>_<journal>_<generation>, and etcd knows which stream
//	                       is the journal (registry.go).
//	J_<cluster>            the chunks of snapshots, subject
//	                       freshet.snapshot.<cluster>.<journal>.<snapshot>.
//
// The leader republishes the headers of each stored message under freshet.tail.<subject>,
// so that every member learns of a new tail without polling.
//
// A message carries all records of one append, so an append is stored completely or not
// at all. Positions count records and sequences count messages, therefore each message
// contains the position of its first record and the number of its records (message.go). A
// snapshot message has no record; it repeats the journal's last position. The last message
// of a stream is never purged, so the end of the journal can always be read from it.
//
// # Invariants
//
//  1. Every publish is conditional: it names the sequence at which its writer believes the
//     stream ends (Nats-Expected-Last-Sequence). The leader checks the condition before it
//     proposes the message, and each replica checks it again when it applies the message.
//     So exactly one of two competing writers gets the next sequence. An acknowledged
//     message is on the disks of a majority.
//
//  2. A publish without an acknowledgement has an unknown outcome. The writer asks the
//     leader where the stream ends (publish.go). Then it reads the message at that sequence
//     from the leader: its own message means success, another writer's message means final
//     failure. When the leader has no message there, not even one that is not committed, the
//     writer publishes the same message again under the same condition, so the message is
//     stored at most once.
//
//  3. When Append returns ErrConflict, the winning record can be read through every
//     member, because a read falls back to the leader when a replica lags.
//
//  4. Last is linearizable. A leader that was cut off from its followers believes for up
//     to twenty seconds that it still leads, and serves reads in that time. So Last first
//     makes the leader commit an entry without effect (a purge that matches no message),
//     then reads the end of the stream, and accepts the response only if a majority has
//     been in contact with the responding server since Last was called. A minority returns
//     errors of kind Unavailable, never a stale position.
//
//  5. Replay returns all records that the leader has, and at least every record that an
//     earlier call on the same journal has revealed. The content at a sequence never
//     changes, so Replay reads it from the nearest replica.
//
//  6. All chunks of a snapshot are durable before the message that makes it the latest
//     snapshot. That message is conditional like a record, so an older snapshot never
//     replaces a later one. Records up to the snapshot are purged afterwards. The previous
//     snapshot is kept, because a member may still be reading it.
//
//  7. A message has the sum of the records before it (link.go). A reader that knows the sum
//     compares it before it passes the records on. It reads a record that does not verify at the
//     other replicas (suspect.go); the journal is lost when a majority has no good one.
//
//  8. A member reports a position in etcd when its copy has the records up to it on disk. A
//     journal that ends before a reported position answers nothing (guarded.go).
//
//  9. At most one stream is the journal at any time: a stream is fenced before another one
//     replaces it, and all acknowledged records before the fence are in the other one, or the
//     journal stays closed (heal.go). Positions never change.
//
// # Sizes
//
// An append has to fit into one message: the payload limit of the servers (16 MiB
// embedded, at least 8 MiB external) less one KiB. A larger append returns
// engine.ErrTooLarge and writes nothing. Snapshots are bounded by the store only.
//
// # Locks
//
//	journal.saving     semaphore channel: one SaveSnapshot at a time.
//	journal.appending  semaphore channel: one publisher to the journal at a time in this
//	                   process. Held over network calls.
//	journal.mu         the cached tail, index and latest snapshot pointer of the
//	                   stream, grown and agreed. Never held over a network call.
//	guarded.mu         which stream is the journal, and its loss. Never held over a network
//	                   call.
//	keeper.mu          semaphore channel: the copy of a journal. Held over network calls, by one
//	                   sync at a time.
//	keeper.queueMu     messages that are not in the copy yet; a leaf.
//	links.mu           the cached sums; a leaf.
//	replies.mu         the publishers that wait for replies; a leaf.
//	Journals.mu        the map of open journals. Never held over a network call.
//
// Order: saving, then appending, then journal.mu. guarded.mu is held when journal.mu or
// Journals.mu is acquired, and keeper.mu when any of these is. A caller that waits for one of the
// semaphore channels can give up when its context ends. Journals.mu and journal.mu are
// never held together. appending orders the publishers of this process only; the condition
// of invariant 1 orders the publishers of all members.
package journal
