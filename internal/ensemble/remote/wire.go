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

// Path is where the internal listener of a member serves calls.
const Path = "/engine/v1"

// Bounds. The largest request is an Append of a whole batch, the largest answer a
// Receive of one; both are bounded far below by the callers.
const (
	maxFrame  = 64 << 20
	maxWait   = 20 * time.Second // that one request may wait for messages; callers ask again
	pageRuns  = 4 << 20          // bytes of runs in one answer
	pageItems = 10_000           // things in one answer
	confirm   = 10 * time.Second // for the caller to say that messages arrived
)

// method is which call a request is.
type method uint8

const (
	createTopic method = iota + 1
	configureTopic
	deleteTopic
	describeTopic
	listTopics
	appendMessages
	readMessages
	createSubscription
	configureSubscription
	deleteSubscription
	resetSubscription
	receive
	settle
	readRuns
	grown
	find
	findNewest
	sides
	trim
	totals
)

// request is any call; what a method does not need is zero and not sent.
type request struct {
	Cluster string
	Shard   int
	Epoch   uint64
	Method  method
	Timeout time.Duration // of the caller; 0 for none
	Frees   bool          // engine.Frees of the caller's context

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
	Marks        []engine.Mark
	Run          engine.Run
}

// answer is the outcome of any call.
type answer struct {
	Failure *failure

	Stats      engine.TopicStats
	IDs        []engine.TopicID
	Appended   []engine.Appended
	Records    []engine.Record
	Deliveries []engine.Delivery
	Found      engine.Found
	Entry      uint64
	Totals     engine.Totals
	Stored     []engine.Stored
	Extent     engine.Extent
	Sides      []engine.Side
	More       bool // of what is listed in pages
}

var errFrame = errs.Newf(errs.TooLarge, "%w: call to another member is over its bound", engine.ErrTooLarge)

// encode makes one value into bytes with their length before them.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 4))
	if err := gob.NewEncoder(&b).Encode(value); err != nil {
		return nil, fmt.Errorf("encoding a call to another member: %w", err)
	}
	if b.Len()-4 > maxFrame {
		return nil, errFrame
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()-4)) //nolint:gosec // bounded above
	return b.Bytes(), nil
}

// readFrame reads one value.
func readFrame(r io.Reader, value any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return errFrame
	}
	// The length is only believed as far as bytes come.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return err
	}
	if err := gob.NewDecoder(&b).Decode(value); err != nil {
		return fmt.Errorf("decoding a call between members: %w", err)
	}
	return nil
}
