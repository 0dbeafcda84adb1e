// Package revision implements a map for state that is reported more than once and out of order:
// by the write path of the resource store and again by informers, which may be late. For each
// key the newest revision wins, and a late report does not restore a deleted key.
//
// The package owns only that rule. It does not know resources, nor the source of the revisions,
// which are etcd's. It has no locks: the type that contains a map protects it with its own lock.
// The packages identity, identity/access, identity/signin and
// controlplane/kinds/messaginginstance use it.
//
// # Revisions
//
// A revision is a positive number that grows with every write. 0 means unknown: such a report is
// accepted unless the key was deleted forever, and the stored revision does not change.
//
// # Tombstones
//
// A deletion at a revision leaves a tombstone: reports of an older revision are late and are
// rejected. A report of the same revision is accepted, because the store reports a requested
// deletion with the revision of an object that may still exist during its grace period. A
// deletion at Forever rejects every later report of the key, for keys that are never reused.
//
// The number of tombstones is limited; a new tombstone replaces the oldest one. Late reports are
// seconds old, so the limit must exceed the number of deletions in some seconds; thousands are
// enough.
package revision
