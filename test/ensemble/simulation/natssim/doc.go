// Package natssim simulates the NATS servers of an ensemble in memory, so that a simulation with
// simulated time can delay, drop, repeat and damage what members read and write.
//
// It speaks the NATS protocol and the part of the JetStream API that packages replicated and journal
// use; members connect with the real client through Link. A stream is one committed log, as an
// intact majority of servers has it. Its three replicas differ only by injected damage: the leader's
// replica answers reads, any replica answers direct reads.
//
// It owns no goroutine after Close. All state is protected by Servers.mu; connections have a lock of
// their own for what they have to send, which is a leaf.
package natssim
