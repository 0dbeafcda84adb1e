// Package revision holds state that is reported more than once and out of order:
// by the write path of the resource store and again by informers, which may be
// late. For each key the newest revision wins, and what was deleted does not
// come back with a late report.
//
// It owns that rule and nothing else. It knows neither resources nor where
// revisions come from (etcd's, read by whoever feeds identity and access), and it
// has no locks: the type that embeds it guards it with its own.
//
// # Revisions
//
// A revision is a positive number that grows with every write. 0 means that it
// is not known: such a report is taken whatever is held, and what is held keeps
// its revision.
//
// # Tombstones
//
// A deletion at a revision leaves a tombstone: reports of an older revision are
// late and are refused. A report of the same revision is taken, because the
// store reports a requested deletion under the revision of an object that may
// still live through its grace period. A deletion at Forever refuses every
// later report of the key, for keys that are never used twice.
//
// Tombstones are bounded in number; the oldest is dropped for a new one. Late
// reports are seconds old, so the bound has to exceed the deletions of some
// seconds, and thousands do.
package revision
