// Package framing splits a stream, such as a snapshot, into parts that are stored or sent one by one,
// and joins them again: into chunks of a fixed size, each of which the caller stores as a value or
// a message of its own, or into frames of any size within one stream, each after its length.
//
// The sizes of chunks and the bytes of frames are part of the formats of stores and journals, so
// they never change. The package has no checksums: its callers protect each part, or the whole.
// Package wire, next door, encodes the fields within a frame.
//
// The types are for one goroutine and have no locks.
package framing
