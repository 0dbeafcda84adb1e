// Package etcdsim simulates the etcd of an ensemble in memory: keys with revisions, transactions,
// leases and watches, which members use through the real client. A simulation with simulated time
// can delay calls, lose responses and cut a member off.
//
// It implements the protocol's client interfaces, so the real client translates every call. All state
// is protected by Store.mu.
package etcdsim
