// Package records reads, validates and writes Kafka record batches (format 2) byte by byte.
//
// The package owns the layout of a batch (docs/spec/stream.md#batch): the header of 61 bytes, the
// records that follow it, and the four compression codecs. A Reader decompresses a batch step by
// step and asks its caller before it uses memory. The package keeps no state between calls except
// pools of decompressors and buffers, which are safe for concurrent use, and has no locks. It does
// not deal with topics, offsets in a log, or the requests that carry batches: package messaging
// stores batches, package kafkaapi receives and sends them.
//
// Invariant: Walk returns no error for a batch that Check accepted, until its bytes change.
package records

import (
	"errors"
	"fmt"
)

// Errors of an invalid batch; compare them with errors.Is.
var (
	// ErrCorrupt means that the bytes differ from those that were sent: they are too few, or
	// the checksum does not match.
	ErrCorrupt = errors.New("record batch is corrupt")
	// ErrInvalid means that the batch arrived intact but violates the format.
	ErrInvalid = errors.New("record batch is invalid")
	// ErrTooLarge means that a record, or the decompressed batch, exceeds its limit.
	ErrTooLarge = errors.New("record batch is too large")
	// ErrCodec means that the batch names a compression codec that does not exist.
	ErrCodec = errors.New("unknown compression codec")
	// ErrTimestamp means that a timestamp is out of range.
	ErrTimestamp = errors.New("record timestamp is out of range")
)

// RecordError names the record of a batch that is invalid.
type RecordError struct {
	Index int32
	Err   error
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }
