// Package pebble is the embedded engine: topic logs, subscriptions and journals
// of one cluster in one Pebble store, on disk or in memory.
//
// It owns the key layout, the group commit, leases, trims and everything else
// between the seam (package engine) and the LSM tree. It knows nothing of names,
// tenants or HTTP; engine/enginetest is the law it passes.
//
// How it works, in the order of the files:
//
//   - commit.go: every write of every topic and journal joins the current
//     group. One goroutine applies groups to Pebble, another waits for the sync
//     of the write-ahead log and completes them in order. So entries become
//     durable in the order of their numbers, and a partition's durable
//     watermark is simply the end of its last completed group.
//   - topic.go, partition.go: topics are loaded at first use and forgotten when
//     idle; an idle topic costs disk, not memory.
//   - cursor.go, receive.go, settle.go: a subscription hands out entry numbers
//     from memory (durable, not acknowledged, not leased, not delayed); records
//     are read outside its lock. Acknowledgements are a floor and bitmaps above
//     it, written at most once per group.
//   - timers.go: one heap and one goroutine for all leases and delays.
//   - trim.go: retention, TTL and quotas by range deletes, driven by a due index
//     in the store, so that idle topics cost nothing.
//
// Locks are taken in this order and never the other way: topic.admin, topic.mu,
// subscription.mu, committer.mu. Nobody waits for a group while holding one of
// them.
package pebble
