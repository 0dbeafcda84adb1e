// Package ensemble is this server's part in the set of servers that run as one: Member, or Single
// for a server that runs alone. Both have the same methods (is the server alive, confirm a change
// on all servers, lead, forward, describe the members), so their callers declare the small
// interfaces that they need and do not ask whether there are other servers.
//
// Member composes what the packages below own: the lease, the election and the connections
// (membership), certificates (bundle), forwarded requests (forwarding), and the NATS server of the
// message log (natsserver). It knows no clusters and no resources: package dataplane/ensemble
// joins it with clusters, package server with the resource API.
//
// A Member is opened in the order of the server's start: Open, Listen, UseLog, Join. Methods that
// need a later step return an error, or do nothing, until that step is done.
//
// Every member observes the streams and files of all members (Observe): it asks the others for their
// health every few seconds, and status, metrics and conditions are made from the latest Observation.
//
// Locks:
//
//	clocks.mu  the measured clocks of the other members; a leaf
//
// Member.membership, Member.log, Member.applied, Member.clusterProblems, Member.health and
// Member.observation are atomic, because other members call this one while it starts. Health and
// Observation are never changed after they are stored.
package ensemble
