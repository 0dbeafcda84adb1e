// Package wire encodes and decodes the fields of small binary values: varints, fixed big-endian
// integers, and bytes after their length. Stored values, journal records and network frames use it.
//
// A Writer appends fields to a slice. A Reader consumes fields from a slice and keeps its first
// error: after an error, every field is zero, so that a decoder reads all fields and asks for the
// error once. A Reader checks every length and count against the bytes that are left before it
// returns anything, so a decoder that meets damaged or hostile bytes neither panics nor allocates
// more than the input explains.
//
// The package does not know what the fields mean, and has no versions, checksums or field names:
// these belong to the format of each caller. Package framing, next door, splits a stream into such
// values.
package wire
