// Package history writes down what clients asked of a running system and what
// they were told, and checks it: nothing that was acknowledged is lost, nothing is
// stored twice that must not be, and no answer contradicts another. It knows
// nothing of servers: one or many, killed or not, the same has to hold.
//
// A client that got no answer, or a server's error, does not know what became of
// its call: its outcome is Unknown, and everything that may follow from it is
// allowed for as long as the answers to other calls leave it open.
//
// What is checked, by the class of a violation:
//
//   - Lost: a message that was acknowledged was never delivered on a subscription
//     that was there from the beginning.
//   - Duplicated: one attempt to produce, or all attempts under one idempotency key,
//     stored two messages; a message was delivered again although the call that
//     acknowledged it had returned; one schema has two ids.
//   - Foreign: a message was delivered under a topic, or a partition, other than the
//     one that it was produced to. Its content names that.
//   - Wrong: a message whose checksum is wrong; an id with two contents; a message that nobody sent; a message stored
//     before one that was acknowledged before it was sent; a single consumer that
//     gets a partition's messages out of order; answers about topics and accounts
//     that no order of the calls explains; a schema that is gone or another; a key
//     that works after its revocation has returned, or is refused before; a
//     position of a group that is not the one committed last; a refusal without a
//     reason; anything that is half made when all is over.
//
// A message that is foreign or damaged counts once, for that: the other checks ignore
// it, and the message in whose place it came counts as lost if it never comes itself.
//
// A Recorder may be used by any number of goroutines; its lock guards the list of
// operations and is held for no call.
package history
