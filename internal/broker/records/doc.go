// Package records reads, checks and writes record batches of the stream
// protocol (format 2), byte by byte.
//
// It owns the layout of a batch (docs/spec/stream.md#batch): the head of 61
// bytes, the records behind it and the five codecs that may pack them. It keeps
// no state and knows nothing of topics, offsets in a log, or the requests that
// carry batches: those are in messaging and streamapi.
//
// A batch that Check let pass can be walked without an error until its bytes
// change.
package records

import (
	"errors"
	"fmt"
)

// What is wrong with a batch; compare with errors.Is.
var (
	// ErrCorrupt: the bytes are not what was sent: too short, or a wrong checksum.
	ErrCorrupt = errors.New("record batch is damaged")
	// ErrInvalid: the bytes arrived as sent and are no batch that can be kept.
	ErrInvalid = errors.New("record batch is not valid")
	// ErrTooLarge: a record, or the batch once it is unpacked, is over its bound.
	ErrTooLarge = errors.New("record batch is too large")
	// ErrCodec: the batch is packed by a codec that does not exist.
	ErrCodec = errors.New("compression type is unknown")
	// ErrTimestamp: a timestamp is out of range.
	ErrTimestamp = errors.New("record timestamp is out of range")
)

// RecordError says which record of a batch is wrong.
type RecordError struct {
	Index int32
	Err   error
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d: %v", e.Index, e.Err) }

// Unwrap returns what is wrong with the record.
func (e *RecordError) Unwrap() error { return e.Err }
