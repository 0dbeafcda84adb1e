// Package replicas finds a good replica of a stream when the leader's, or another one, returns a record that
// does not verify.
//
// NATS clients cannot address a replica: only the leader answers. So Search makes each replica the leader in
// turn. It stops at the first one whose record verifies: sums are chained, so a record that verifies is the
// one that was written. Packages replicated and journal, which own the streams, verify the records; package
// natsserver verifies and replaces the files of a server that had another record.
//
// A server is suspected only if it had no good record as the leader. A follower that was killed or rejoins can
// lack records for a while, and consumers and direct reads show that.
//
// The package has no locks.
package replicas
