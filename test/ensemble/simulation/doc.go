// Package simulation runs the owners, standbys, leases and journals of an ensemble in simulated time
// over a simulated log and a simulated etcd (packages natssim and etcdsim), on a file system that
// forgets what was not synced. A seed determines the faults: messages that are lost, late, repeated
// or never answered, elections, cut connections, crashes, damaged replicas, logs that lost their
// end, and damaged files of copies, which members replace with checkpoints of each other.
//
// After each run it checks that every acknowledged message and journal record exists once, at its
// position and with its content, or that the shard is closed because its log is lost.
//
// Not simulated: coordinators of consumer groups; copies of journals, because their keeper holds a mutex over
// network calls, and simulated time stands still while a goroutine waits for a mutex; quarantine, which is on a real
// disk.
//
// A run that fails prints its seed, and make simulate FRESHET_SEED=n repeats it with the same faults. Go's
// scheduler orders goroutines differently in each run, so a repetition may need several attempts.
package simulation
