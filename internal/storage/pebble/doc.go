// Package pebble is the embedded engine: topic logs, subscriptions and journals
// of one cluster in one Pebble store, on disk or in memory.
//
// It owns the key layout, the group commit, leases, trims and everything else
// between the seam (package engine) and the LSM tree. It knows nothing of names,
// tenants or HTTP; engine/enginetest is the conformance suite it passes.
//
// How it works, in the order of the files:
//
//   - commit.go: every write of every topic and journal joins the current
//     group; see "The commit pipeline" below.
//   - era.go: a message's key starts with the era it was written in, so that
//     compactions leave old messages alone.
//   - topic.go, partition.go: topics are loaded at first use and forgotten when
//     idle; an idle topic costs disk, not memory.
//   - cursor.go, receive.go, settle.go: a subscription hands out entry numbers
//     from memory (durable, not acknowledged, not leased, not delayed); records
//     are read outside its lock. Acknowledgements are a floor and bitmaps above
//     it, written at most once per group.
//   - timers.go: one heap and one goroutine for all leases and delays.
//   - trim.go, trimmer.go: retention, TTL and quotas by range deletes, driven by
//     a due index in the store, so that idle topics cost nothing.
//   - usage.go: usage of all topics for an operator, at the cost of those in
//     memory.
//   - checkpoint.go: a copy of the store as it is at one moment, for backups.
//   - intact.go, logscan.go: what is missing from a store is found before it is
//     opened; damage.go: what cannot be read of an open one.
//   - failstop.go: a failed write of the log stops the engine for good.
//   - store.go, log.go: the store under the engine; with a log outside of it, the
//     store follows that log, and engines come and go on it.
//
// # The commit pipeline
//
//	callers ── add to ──► cur ── applyLoop ──► Pebble's log and memtable
//	                                               │ fsync, many groups at once
//	callers ◄── done ── complete ◄── syncLoop ◄────┘
//
// A caller locks committer.mu, takes its numbers (the entry of a message, the
// position of a journal record), adds its writes to the current group, unlocks,
// and waits for the group's done. What holds:
//
//  1. Numbers are taken and writes are added in one step under committer.mu. So
//     the order of entries is the order of groups, and of writes in a group.
//  2. A group is written in one Pebble batch: after a crash it is there whole or
//     not at all.
//  3. One goroutine (applyLoop) takes the current group and applies it, another
//     (syncLoop) waits for the sync of the write-ahead log and completes groups,
//     both in order. So a partition's durable watermark is the end of its last
//     completed group, and a journal's likewise.
//  4. Until applyLoop takes it a group is guarded by committer.mu; then it belongs
//     to applyLoop, then to syncLoop. Cursors and partitions keep a pointer to it
//     only to compare: "have I a slot in this group already?"
//  5. A group that was added to is always taken: the first unlockAndCommit since
//     the last swap sends to committer.wakeup, and committer.woken says so.
//  6. complete publishes in this order: watermarks, the functions in group.after,
//     the callers (done), waiting consumers. Readers look no further than the
//     watermarks, so nothing is visible before it is durable, and a caller that
//     was answered sees its own write.
//  7. done is closed once: by complete, which takes the group out of inFlight in
//     the same critical section in which it finds that nothing has failed, or by
//     fail, which closes what is in inFlight and cur. After fail no group is
//     joined, applied or completed.
//  8. A topic that a group has written to stays loaded until the group has
//     completed (group.pin). So a topic that is loaded from the store shows
//     nothing that is not durable.
//  9. Memory is bounded: cur by maxGroupBytes (appends wait for room, small
//     writes do not), groups in flight by groupsInFlight and maxUnsynced.
//
// # A log outside of the store
//
// With a Log, which members of a group share, Pebble has no log of its own:
//
//	callers ── add to ──► cur ── applyLoop ──► Log ── copies on other members
//	                                            │ acknowledged, in order
//	callers ◄── done ── complete ◄── syncLoop ──┴──► Pebble's memtable
//
// syncLoop waits until the log has a group, then applies its batch to the store
// together with the log's mark, then completes it. Everything above holds, since
// nobody could tell before how long a group takes from cur to done; and:
//
//  10. The store is never ahead of its log: what is in it is the log up to the mark,
//     at any moment, and after a crash up to an earlier mark.
//  11. What is in a group that has not completed cannot be read from the store, and
//     nobody tries: topics stay loaded (8), new topics, subscriptions and journals
//     are known by the group that created them, messages with a deduplication key
//     by dedup.pending, cursors and blocks of acknowledgements by what is in memory
//     (a subscription is loaded before it is first written to), topics due for
//     trimming by trimmer.soon and topic.trimDue, sides by the partition's group,
//     which is waited for, a journal's snapshot by journal.saving, likewise.
//  12. An error of the log stops the engine with ErrNotOwner, as a failure does with
//     ErrFailed (7); but all its goroutines end, and after Close the store can follow
//     the log again, or have another engine.
//
// # Locks
//
// Each row: the lock, what it guards, who holds it for long.
//
//	Engine.closeMu      that Close runs once; held until the store is closed.
//	topicTable.mu       the loaded topics, the redelivery counts and usage of
//	                    unloaded ones, and that no pin is added while a topic is unloaded.
//	                    Loading happens outside it.
//	topic.admin         one change of a topic's shape or move of its cursors at a
//	                    time (configure, subscribe, reset, trim, delete), and
//	                    topic.nextSub. Held during reads of the store.
//	topic.mu            topic.subs. Never held during reads of the store.
//	dedup.mu            that looking for a duplicate and adding a message are one
//	                    step. Held during reads of the store, and while an append
//	                    waits for room in a group.
//	subscription.mu     a subscription with its cursors, items, timers and waiters.
//	                    Messages are not read under it; acknowledgements are, and
//	                    the sizes of messages when a floor moves over many.
//	journalTable.mu     the open journals; held while one is opened.
//	journal.saveMu      one snapshot of a journal is saved at a time, and
//	                    journal.lastID; held until the snapshot is durable.
//	committer.mu        cur, inFlight and the bounds; the numbers of partitions and
//	                    journals (next, cum, publish, assigned, durable …), eras,
//	                    topic.trimDue, stored and pinnedBy; changes of topic.config,
//	                    parts and deleted, which are read without it. Held for
//	                    moments: nothing is read, written or waited for under it,
//	                    so Pebble may fail the engine from any of its goroutines.
//
//	committer.applying  that one group is handed to Pebble at a time; a checkpoint
//	                    holds it and pauses writes. Taken with no other lock held.
//
// The others are leaves: whoever holds one takes no other.
//
//	topic.waitMu        the subscriptions of a topic that somebody waits on.
//	clock.mu            when which subscription has to be woken.
//	partition.delayMu   the entries that are not due yet.
//	dedup.pendingMu     messages with a key in groups that have not completed.
//	trimmer.mu          topics due soon, which the store may not have yet.
//	deadLetterMover.mu  the queue of messages to move.
//	journal.snapMu      which snapshot is the latest, and which group replaces it.
//	reclaimer.mu        how much was deleted in which eras.
//	broadcast.mu        the channel that waiting readers share.
//	damage.mu           which messages and tables were found damaged.
//
// Locks are taken from left to right and never the other way:
//
//	topicTable.mu ─┐
//	topic.admin ───┴► topic.mu ─► subscription.mu ─┐
//	dedup.mu ──────────────────────────────────────┤
//	journalTable.mu ───────────────────────────────┼► committer.mu ─► leaves
//	journal.saveMu ────────────────────────────────┘
//
// topicTable.mu and topic.admin are never held together, nor dedup.mu with any
// lock left of committer.mu. Two subscriptions are locked at once only to delete
// their topic, under topic.admin and topic.mu.
//
// Completing a group takes committer.mu and, after letting that go, topicTable.mu,
// subscription.mu and leaves. So nobody waits for a group, nor for room in one,
// while holding these or topic.mu. With topic.admin, dedup.mu and journal.saveMu
// one may.
//
// A function that returns with a lock held is named lock…, one that must be
// called with it …Locked; its comment or its type's says which lock.
package pebble
