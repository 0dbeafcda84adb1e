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
// A group is of one of two protocols, and changes it only while it has no members.
// In the classic one members join for a generation and their leader assigns. In
// the consumer one the coordinator does: a heartbeat says what a member subscribes
// to and what it has let go; when members, subscriptions or topics change, the
// group's epoch moves, an assignor makes a target for every member, and each is
// led to its own: first it lets go what is not in it, then it gets what nobody
// else holds any more, and with that the epoch of the target. What has to be known
// of topics for this comes with each heartbeat (Topics).
//
// What must survive a restart is a state machine over journals (package replica):
// committed offsets, and the generation of every group once it is stable. Sixteen
// of them, a group always in the same one, so that commits of different groups
// are appended side by side. Classic joins and all heartbeats that change nothing
// write nothing. Of a group of the consumer protocol everything is stored, as the
// members that have changed, before anybody is told of it. After a restart
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
