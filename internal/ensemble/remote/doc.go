// Package remote calls an engine at the member of a group that owns a shard.
//
// It has the methods of engine.Engine whose arguments and results are plain
// values: one call is one HTTP/2 request to the owner's internal listener. It
// decides nothing: which member that is, and when to try again, is package
// sharded's business, and what a client of the service sends goes to the owner as
// it is and not through here (docs/adr/0032-one-engine-over-shards.md).
//
// # What a call promises
//
//   - The owner does it or refuses it. A request says which shard of which cluster
//     it is for and which epoch its sender believes in; whoever does not own that
//     shard refuses with engine.ErrNotOwner and names the owner it knows. It never
//     sends the request on, so there is one hop at most.
//   - Refused says of an error that nothing has happened: the owner refused, or was
//     never reached. After any other broken connection the outcome is unknown
//     (ErrUnreachable), and nothing is tried again here.
//   - Errors keep their identity for errors.Is, their kind and their text.
//   - Cancelling the call cancels it at the owner. Messages that were leased for a
//     caller who is gone go back at once, counted as delivered: the owner keeps a
//     lease only when the caller has said that the messages arrived.
//   - Both sides are bounded: requests and answers by their size, waiting by time.
package remote
