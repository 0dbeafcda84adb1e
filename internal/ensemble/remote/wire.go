package remote

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// Path is the URL path of calls on a member's internal listener.
const Path = "/engine/v1"

// Limits. The largest request is an Append of a whole batch, the largest response a Receive
// of one; callers keep both far below the limit.
const (
	maxFrameBytes  = 64 << 20
	maxWait        = 20 * time.Second // how long one request may wait for messages; callers repeat it
	pageBytes      = 4 << 20          // bytes of batches in one response
	pageItems      = 10_000           // elements in one response
	confirmTimeout = 10 * time.Second // for the caller to confirm that messages arrived
)

// method is the number of an operation (operations.go).
type method uint8

// request is any call. gob does not send fields that are zero.
type request struct {
	Cluster string
	Shard   int
	Epoch   uint64
	Method  method
	Timeout time.Duration // of the caller; 0 for none
	Frees   bool          // engine.AllowedWhenDiskFull of the caller's context

	Topic        engine.TopicID
	Partition    int32
	Name         string // of a subscription
	Limit        int
	Entry        uint64
	Millis       int64
	Key          []byte
	TopicConfig  engine.TopicConfig
	Subscription engine.SubscriptionConfig
	Position     engine.Position
	Messages     []engine.Message
	Settlements  []engine.Settlement
	Read         engine.ReadRequest
	Receive      engine.ReceiveRequest
	Marks        []engine.PartitionPosition
	Run          engine.MessageBatch
}

// reply is the result of any call.
type reply struct {
	Failure *wireError

	Stats      engine.TopicStats
	IDs        []engine.TopicID
	Appended   []engine.Appended
	Records    []engine.Record
	Deliveries []engine.Delivery
	Found      engine.FindResult
	Entry      uint64
	Totals     engine.Totals
	Stored     []engine.StoredValue
	Extent     engine.Extent
	Sides      []engine.Attribute
	More       bool // there is another page
}

var errFrameTooLarge = errs.Newf(errs.TooLarge, "%w: call to another member exceeds %d bytes", engine.ErrTooLarge,
	maxFrameBytes)

// encode returns the gob encoding of a value, prefixed with its length.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 4))
	if err := gob.NewEncoder(&b).Encode(value); err != nil {
		return nil, fmt.Errorf("encoding a call to another member: %w", err)
	}
	if b.Len()-4 > maxFrameBytes {
		return nil, errFrameTooLarge
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()-4)) //nolint:gosec // bounded above
	return b.Bytes(), nil
}

// readFrame reads and decodes one value.
func readFrame(r io.Reader, value any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrameBytes {
		return errFrameTooLarge
	}
	// Memory grows with the bytes that arrive, not with the announced length.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return err
	}
	if err := gob.NewDecoder(&b).Decode(value); err != nil {
		return fmt.Errorf("decoding a call between members: %w", err)
	}
	return nil
}
