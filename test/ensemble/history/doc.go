// Package history records the calls of clients to a running system and the responses, and
// checks them: nothing acknowledged is lost, nothing is stored twice that must not be, and
// no response contradicts another. It does not depend on the servers: the same guarantees
// hold for one server or several, with and without faults.
//
// A client that got no response, or a server error, does not know whether its call took
// effect: the outcome is Unknown, and the checks allow every effect that is consistent
// with the other responses.
//
// The classes of violations:
//
//   - Lost: an acknowledged message was never delivered on a subscription that existed from
//     the start; a schema whose id was returned cannot be read; the position of a consumer
//     group is lower than the last committed one.
//   - Duplicated: one attempt to produce, or all attempts with one idempotency key, stored
//     two messages; a message was delivered again after the call that acknowledged it had
//     returned; one schema has two ids.
//   - Foreign: a message was delivered under another topic or partition than the one that
//     it was produced to, which its content names.
//   - Wrong: a message with a wrong checksum; an id with two contents; a message that was
//     not sent; a message stored before one that was acknowledged before it was sent; a
//     single consumer that gets a partition's messages out of order; calls on topics and
//     accounts that are not linearizable; an id of two schemas; a key that works after its
//     revocation has returned, or is rejected before it; a position of a consumer group that
//     was not committed; a rejection without a reason; an object that is incomplete at the end.
//
// A message that is foreign or damaged counts once, for that: the other checks ignore it.
// The message that should have been delivered instead counts as lost if it is never
// delivered.
//
// A Recorder is safe for concurrent use. Its mu protects the list of operations and is
// never held during a client's call.
package history
