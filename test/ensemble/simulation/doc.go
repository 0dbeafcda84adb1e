// Package simulation runs the owners, standbys, leases, journals, group coordinators and repair of an ensemble in
// simulated time over a simulated log and a simulated etcd (packages natssim and etcdsim), on a file system that
// forgets what was not synced. A seed determines the faults: messages that are lost, late, repeated or never
// answered, elections, cut connections, crashes, damaged replicas, logs that lost their end, damaged files of copies,
// which members replace with checkpoints of each other over transfers that end early, and journals that lost
// records, which members rebuild from their copies.
//
// After each run it checks that every acknowledged message and journal record exists once, at its position and with
// its content, or that the shard is closed because its log is lost; that every acknowledged offset of a consumer group
// is there; and that every damaged copy was replaced. In the run a group has one coordinator at a time, and no two of
// its members have the same partition.
//
// In files: plan.go draws what happens; faults.go, disks.go and journals.go inject faults; clients.go, journals.go and
// coordinators.go are the clients; network.go connects the members; check.go checks the result.
//
// Not simulated: the files of the log's and of etcd's servers. Copies of journals, marks, the register of damaged files
// and quarantine are on a real disk, which forgets nothing in a crash; a damaged store is removed instead of moved into
// quarantine. Simulated time stands still while a goroutine waits for a mutex, so no simulated code may hold a mutex
// that others wait for over a call to the log, etcd or another member.
//
// Locks: world.mu, transfers.mu and coordination.mu are leaves and never held over a call.
//
// A run that fails prints its seed, and make simulate FRESHET_SEED=n repeats it with the same faults. Go's
// scheduler orders goroutines differently in each run, so a repetition may need several attempts.
package simulation
