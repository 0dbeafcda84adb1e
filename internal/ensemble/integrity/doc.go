// Package integrity records what a member of an ensemble knows about its own files: when it last
// verified each part, which parts are damaged, and when they were replaced by a good copy. It keeps
// damaged files in quarantine for a day.
//
// A part is what the member can drop and fetch again as a whole: the copy of a shard, the copy of a
// journal, the replicated logs. The package neither verifies nor fetches: packages natsserver,
// replicated and journal do, and report here. Status, metrics and conditions are made from
// Register.Parts.
//
// Locks:
//
//	Register.mu  the parts and the file that they are stored in; a leaf
package integrity
