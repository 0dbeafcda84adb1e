// Package natsfiles verifies the files of a JetStream directory while no server has it open: message
// blocks, Raft logs, Raft snapshots, terms and votes, peers, the descriptions of streams and consumers.
//
// The formats are those of nats-server v2.15. nats-server verifies less: it reads most blocks only when
// somebody asks for their messages, cuts a damaged log at the damage, and starts a Raft group without a
// snapshot that does not verify.
//
// What a kill or a power cut leaves behind is not damage: an incomplete last record of the last block of
// a log, files that were being written under a temporary name, a half-finished purge. nats-server repairs
// these when it starts. Everything else that does not verify is damage.
//
// A checksum does not show that a log was cut between two records. Floors do: the running server records
// what its logs contain, and Report.Below compares the files with that record. Manifest recognizes a
// directory that has not changed since the server was stopped.
//
// The package has no locks. It never changes the directory.
package natsfiles
