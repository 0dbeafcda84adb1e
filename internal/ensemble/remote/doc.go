// Package remote calls a shard's engine on the member of an ensemble that owns the shard.
//
// Shard has the methods of engine.Engine whose arguments and results are plain values. One
// call is one HTTP/2 request to the owner's internal listener. The package does not choose
// the owner and does not retry: package sharded does. Requests of clients are forwarded to
// the owner by the server and do not pass through this package
// (docs/adr/0032-one-engine-over-shards.md).
//
// # Guarantees of a call
//
//   - The owner executes it or refuses it. A request contains the cluster, the shard and
//     the epoch of the owner that its sender knows. A member that does not own the shard
//     refuses with engine.ErrNotOwner and returns the owner that it knows. It never
//     forwards the request, so there is at most one hop.
//   - Refused reports whether an error means that nothing has happened: the owner refused
//     the call, or was never reached. After any other broken connection the outcome is
//     unknown (ErrUnreachable), and this package does not retry.
//   - Errors keep their identity for errors.Is, their kind and their text.
//   - Cancelling the call cancels it at the owner. Messages that were leased for a caller
//     that has disconnected are released immediately and count as delivered: the owner
//     keeps a lease only after the caller has confirmed that the messages arrived.
//   - Both ends are bounded: requests and responses by size, waiting by time.
//
// # Wire format
//
// Requests and responses are encoded with encoding/gob (wire.go), which identifies fields by
// name. The field names of request, reply, wireError and of the engine types in them, and the
// numbers of the operations (operations.go), are therefore part of the protocol between
// members of different versions. testdata/calls.golden contains the bytes of every call.
//
// # Locks
//
// The package has no locks: Client, Shard and Server do not change after construction.
package remote
