// Package filter evaluates expressions over messages: search, tail, the redrive of dead letters and
// subscriptions select messages with them (docs/spec/messages.md#expressions).
//
// The package owns the language, which is CEL with the variables of a message, the decoding of
// payloads, and the limits of both. It does not read topics, and does not know where schemas are
// stored: package messaging does, and passes them as Schemas.
//
// A Filter is compiled once and is immutable. An Evaluator evaluates it for one message after
// another and belongs to one goroutine. A payload is decoded only as far as the expression reads
// it: `payload.total` skips the fields before `total` and builds no other value. Values refer to
// the payload's memory, and are valid only during one evaluation.
//
// # Limits
//
// Everything that an expression or a payload can choose is bounded:
//
//   - Compile rejects expressions that are long or deeply nested, loops within loops, many
//     concatenations, and regular expressions that are large or not written as literals.
//   - Every read of a variable or a member takes from a budget of the message (budget), so that the
//     work is proportional to the size of the message.
//   - JSON, Avro and Protobuf are decoded lazily, with a limit of the nesting, and never into more
//     than maxElements values.
//
// An evaluation that fails, or exceeds a limit, is an error of that message. The caller counts it
// and continues. The package has no locks.
package filter
