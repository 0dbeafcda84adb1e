// Package quota keeps organizations, and single clusters of theirs, within their
// limits: how many things they have, how much they store, and how fast they call.
//
// It owns limits, reservations and rates, and counts nothing itself: whoever keeps
// the things says how many there are (Cluster.Follow, Organization.Create), so
// that counts survive restarts and cannot drift. docs/spec/resources.md#quotas says what counts
// as what. Surfaces turn the errors into their own form: Exhausted is 403,
// Throttled is 429 with Retry-After.
//
// # Locks
//
// Book.mu guards the configuration. Organization.mu guards what is reserved and
// not made yet; it is held for a few additions and takes no other lock. Rates and
// stored bytes, which every message passes, are atomics.
package quota
