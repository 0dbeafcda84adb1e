// Package pebble is the embedded engine: it stores the topic logs, subscriptions and
// journals of one cluster in one Pebble store, on disk or in memory.
//
// It owns the key layout, the commit pipeline, leases, trimming and everything else
// between package engine and the LSM tree. It does not know names, tenants, policies or
// HTTP. Package dataplane opens it for a cluster on one server, ensemble/replicated for
// a shard of an ensemble; storage/enginetest is the conformance suite that it passes.
//
// The main files:
//
//   - commit.go: every write of every topic and journal joins the current commit batch;
//     see "The commit pipeline" below. linger.go: how long a batch waits for writers.
//   - keys.go, values.go, record.go: the layout of keys and values. era.go: the key of a
//     message starts with the era in which it was written, so that compactions do not
//     rewrite old messages.
//   - topic.go, partition.go: topics are loaded at first use and unloaded when idle, so
//     that an idle topic costs disk space but no memory.
//   - append.go: the path of messages and batches into a commit batch.
//   - batches.go, split.go: batches of messages that are stored as one value. splitcache.go
//     caches the decoded parts of batches.
//   - cursor.go, receive.go, settle.go: a subscription selects the entries to deliver from
//     memory (durable, not acknowledged, not leased, not delayed) and reads the records
//     outside its lock. Acknowledgements are a floor and bitmaps above it, which are
//     written at most once per commit batch.
//   - timers.go: one heap and one goroutine for all leases and delays.
//   - trim.go, trimmer.go: retention, TTL and quotas by range deletes. An index of due
//     times in the store drives them, so that idle topics cost nothing.
//   - usage.go: usage statistics of all topics, at the cost of the topics in memory.
//   - checkpoint.go: a copy of the store at one point in time, for backups.
//   - intact.go, logscan.go: detect missing or truncated files before the store is opened.
//     damage.go: unreadable data of an open store.
//   - failstop.go: a failed write to the write-ahead log stops the engine permanently.
//   - store.go, log.go: the store below the engine. A store with an external log follows
//     that log, and engines are opened and closed on it. content.go: checksums of its
//     content, which the copies of a shard compare.
//
// # The commit pipeline
//
//	callers ── add to ──► cur ── applyLoop ──► Pebble's log and memtable
//	                                               │ one fsync for many batches
//	callers ◄── done ── complete ◄── syncLoop ◄────┘
//
// A caller locks committer.mu, takes its numbers (the entry of a message, the position
// of a journal record), adds its writes to the current commit batch, unlocks, and waits
// until the batch is done. Invariants:
//
//  1. A caller takes its numbers and adds its writes in one critical section of
//     committer.mu. So entries are ordered like commit batches, and within a batch like
//     its writes.
//  2. A commit batch is one Pebble batch: after a crash the store has all of it or
//     nothing.
//  3. One goroutine (applyLoop) takes the current batch and applies it. Another one
//     (syncLoop) waits for the sync of the write-ahead log and completes batches. Both
//     work in order. So the durable watermark of a partition or journal is its end in the
//     last completed batch.
//  4. committer.mu protects a batch until applyLoop takes it. From then on the batch
//     belongs to applyLoop, and later to syncLoop. Cursors and partitions keep a pointer
//     to it only to compare: "does this batch have a write of mine already?"
//  5. Every batch that was added to is taken: the first unlockAndCommit since the last
//     swap sends to committer.wakeup, and committer.woken records that.
//  6. complete publishes in this order: watermarks, the functions in commitBatch.after,
//     the callers (done), waiting consumers. Readers stop at the watermarks. So nothing is
//     visible before it is durable, and a caller whose write has returned reads its own
//     write.
//  7. done is closed exactly once: by complete, which removes the batch from inFlight in
//     the critical section in which it sees that nothing has failed, or by fail, which
//     closes the batches in inFlight and cur. After fail no batch is joined, applied or
//     completed.
//  8. A topic that a batch has written to stays loaded until the batch has completed
//     (commitBatch.pinLocked). So a topic that is loaded from the store contains only
//     durable data.
//  9. Memory is bounded: cur by maxBatchBytes (appends wait for the next batch, small
//     writes do not), batches in flight by maxInFlight and maxUnsyncedBytes. With an
//     external log the limits are maxLoggedBatchBytes, maxLoggedInFlight and Log.Crowded.
//
// # External log
//
// With a Log, which the members of an ensemble replicate, Pebble writes no log of its own:
//
//	callers ── add to ──► cur ── applyLoop ──► Log ── copies on other members
//	                                            │ acknowledged, in order
//	callers ◄── done ── complete ◄── syncLoop ──┴──► Pebble's memtable
//
// syncLoop waits until the log has acknowledged a batch, applies the batch to the store
// together with its log position, and completes it. The invariants above hold, because
// no part of them depends on how long a batch takes from cur to done. In addition:
//
//  10. The store is never ahead of its log: at any moment its content is the log up to
//     the stored position, and after a crash up to an earlier position.
//  11. Data of a batch that has not completed cannot be read from the store, and no code
//     reads it there. Topics stay loaded (8). New topics, subscriptions and journals keep
//     the batch that created them. dedup.pending holds messages with a deduplication
//     key. Cursors and acknowledgements are in memory, because a subscription is loaded
//     before its first write. trimmer.soon and topic.trimDue hold topics that are due for
//     trimming. Readers of a partition's attributes wait for its last batch, readers of a
//     journal's snapshot for journal.saving.
//  12. An error of the log stops the engine with ErrNotOwner, as a failed write does with
//     ErrFailed (7). All its goroutines end, and after Close the store can follow the log
//     again or get another engine.
//
// # Locks
//
// Each row: the lock, what it protects, how long it is held.
//
//	Engine.closeMu      Close runs once; held until the store is closed.
//	topicTable.mu       the loaded topics, and the redelivery counts and usage of unloaded
//	                    ones. No pin is added while a topic is unloaded. Topics are loaded
//	                    outside it.
//	topic.admin         one administrative change of a topic at a time (configure,
//	                    subscribe, reset, trim, delete), and topic.nextSub. Held during
//	                    reads of the store.
//	topic.mu            topic.subs. Never held during reads of the store.
//	dedup.mu            makes the search for a duplicate and the append one step. Held
//	                    during reads of the store, and while an append waits for capacity
//	                    in a commit batch.
//	subscription.mu     a subscription with its cursors, items, timers and waiters. Held
//	                    while acknowledgements are read, and the sizes of messages when a
//	                    floor moves over many. Messages are read outside it.
//	journalTable.mu     the open journals; held while one is opened.
//	journal.saveMu      one snapshot of a journal is saved at a time, and journal.lastID;
//	                    held until the snapshot is durable.
//	committer.mu        cur, inFlight and the bounds; the numbers of partitions and
//	                    journals (next, cum, publish, assigned, durable …), eras,
//	                    topic.trimDue, stored and pinnedBy; changes of topic.config, parts
//	                    and deleted, which are read without it. Held briefly: the holder
//	                    does not read, write or wait, so Pebble may fail the engine from
//	                    any of its goroutines. committer.synced is its condition variable.
//	committer.applying  one commit batch is handed to Pebble at a time; a checkpoint holds
//	                    it to pause writes.
//	committer.tokens    a semaphore channel: one token per batch in flight. applyLoop
//	                    acquires it, syncLoop releases it.
//
// The following locks are leaves: their holder takes no other lock.
//
//	topic.waitMu        the subscriptions of a topic that have waiting consumers.
//	clock.mu            the time at which each subscription has to be woken.
//	partition.delayMu   the entries that are not due yet.
//	dedup.pendingMu     messages with a key in batches that have not completed.
//	trimmer.mu          topics that are due soon, which may not be in the store yet.
//	deadLetterMover.mu  the queue of messages to move.
//	journal.snapMu      the latest snapshot, and the batch that replaces it.
//	reclaimer.mu        the deleted bytes and the eras that contain them.
//	broadcast.mu        the channel that waiting readers share.
//	watchers.mu         the callers of WaitEntries that wait for a partition.
//	Content.mu          the snapshot of a store's content.
//	damage.mu           the messages that were found damaged.
//	tableRetry.mu       the failures of flushes and compactions.
//	splitCache.mu       the cache of decoded batches, and the readers of cached windows.
//
// Locks are taken from left to right, never in the other direction:
//
//	topicTable.mu ─┐
//	topic.admin ───┴► topic.mu ─► subscription.mu ─┐
//	dedup.mu ──────────────────────────────────────┤
//	journalTable.mu ───────────────────────────────┼► committer.mu ─► leaves
//	journal.saveMu ────────────────────────────────┤
//	committer.applying ────────────────────────────┘
//
// Engine.closeMu comes before all of them, because Close waits for the goroutines that
// take them. topicTable.mu and topic.admin are never held together, and dedup.mu is never
// held with another lock left of committer.mu. committer.applying is acquired with no
// other lock held; a failure under it takes committer.mu. Two subscriptions are locked at
// the same time only to delete their topic, under topic.admin and topic.mu.
//
// Callers' locks come first: package messaging calls AppendBatch and Attributes with the mutex
// of its producerTable held, so the order is producerTable.mu, then the locks above. No code of
// a caller runs with one of these locks held: a caller passes the attributes of a batch as
// values, to which AppendBatch adds the batch's first entry under committer.mu. The functions
// that callers pass (visit of a read, OnDeadLetter, the functions in commitBatch.after) run
// without a lock; only write of SaveSnapshot runs with journal.saveMu.
//
// complete takes committer.mu and, after releasing it, topicTable.mu, subscription.mu and
// leaves. So a goroutine that holds topicTable.mu, topic.mu, subscription.mu or
// committer.mu must not wait for a commit batch or for capacity in one. The holder of
// topic.admin, dedup.mu or journal.saveMu may.
//
// A function that returns with a lock held is named lock…; a function that must be called
// with a lock held ends in …Locked. Its comment or that of its type names the lock.
package pebble
