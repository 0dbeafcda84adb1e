// Package groups coordinates consumer groups of the stream protocol: who is a
// member, which generation of the group is in force, who leads it, what each
// member was assigned, and the offsets that were committed.
//
// It owns that state and its rules (docs/spec/stream.md#groups). It does not
// know the bytes of requests, which are streamapi's, nor what topics are: a topic
// is the number of its incarnation, so that one which is made anew starts without
// offsets. Subscriptions, with which HTTP consumers share messages, are another
// thing and belong to messaging.
//
// What must survive a restart is a state machine over journals (package replica):
// committed offsets, and the generation of every group once it is stable. Sixteen
// of them, a group always in the same one, so that commits of different groups
// are appended side by side. Joins and heartbeats write nothing. After a restart
// a group with a stored generation is stable, and its members have a whole
// session to be heard of: nobody has to join again.
//
// # Locks
//
//	shard.mu   the groups of a shard in memory; held for moments.
//	group.mu   everything of one group in memory. Nothing is waited for under it:
//	           who writes to the journal lets it go and looks again afterwards.
//
// shard.mu is taken before group.mu, never the other way. A group that is no
// longer in its shard's map is dead, and whoever has locked it looks it up again.
//
// # Time
//
// A group with members has one timer, set to the earliest of its deadlines: the
// end of a phase of a rebalance, or of a member's session. Heartbeats move a
// deadline and leave the timer alone; when it fires too early it is set again.
package groups
