package streamapi

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/engine"
	"freshet/internal/messaging"
	"freshet/internal/records"
)

const (
	maxFetchBytes    = 55 << 20
	fetchesAtOnce    = 8
	maxFetchWait     = 60 * time.Second
	maxBuiltRecords  = 1000 // of single messages in one batch
	maxBuiltBytes    = 256 << 10
	maxPartitionsAll = 100_000 // in one request
)

// fetching is a Fetch request on its way.
type fetching struct {
	c        *call
	request  *kmsg.FetchRequest
	response *kmsg.FetchResponse
	left     int  // bytes that the response may still take
	any      bool // some batch is in it
	failed   bool // some partition has an error, which is not waited with
	bytes    int
	marks    []engine.Mark // the ends of partitions that gave nothing
}

func fetch(ctx context.Context, c *call, request *kmsg.FetchRequest, response *kmsg.FetchResponse) error {
	if request.ReplicaID >= 0 {
		response.ErrorCode = codeInvalidRequest // nobody replicates from here
		return nil
	}
	wait := min(time.Duration(request.MaxWaitMillis)*time.Millisecond, maxFetchWait)
	deadline := time.Now().Add(wait)
	for {
		*response = kmsg.FetchResponse{Version: response.Version}
		f := fetching{c: c, request: request, response: response, left: min(int(request.MaxBytes), maxFetchBytes)}
		if c.version < 3 || f.left <= 0 {
			f.left = maxFetchBytes
		}
		if err := f.readWithRoom(ctx); err != nil {
			return err
		}
		if f.bytes >= int(request.MinBytes) || f.failed || len(f.marks) == 0 || time.Until(deadline) <= 0 {
			return nil
		}
		if more, err := f.await(ctx, deadline); err != nil || !more {
			return err
		}
		if !c.session.who.Live() {
			return errRevoked
		}
		c.conn.release(c.reserved)
		c.reserved = 0
	}
}

// readWithRoom reads once it is its turn, and takes room for what was read before
// it is the next one's.
func (f *fetching) readWithRoom(ctx context.Context) error {
	c := f.c
	if err := c.conn.server.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.conn.server.reading.Release(1)
	if err := f.read(ctx); err != nil || f.bytes <= smallFrame {
		return err
	}
	held, err := c.conn.hold(ctx, int64(f.bytes))
	c.reserved = held
	return err
}

// await waits for more at the ends of the partitions; false when the time is over.
func (f *fetching) await(ctx context.Context, deadline time.Time) (bool, error) {
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(f.c.conn.server.draining, cancel)()
	err := f.c.session.cluster.Broker.Grown(waiting, f.marks)
	switch {
	case err == nil, errors.Is(err, engine.ErrNoTopic):
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, nil // the time is over, or the broker drains
}

// read fills the response with what there is.
func (f *fetching) read(ctx context.Context) error {
	partitions := 0
	for i := range f.request.Topics {
		asked := &f.request.Topics[i]
		if partitions += len(asked.Partitions); partitions > maxPartitionsAll || len(f.request.Topics) > maxTopics {
			return errors.New("client fetches from more topics or partitions than the limit allows")
		}
		topic, err := f.c.topicBy(ctx, asked.Topic, asked.TopicID, permitConsume)
		row := kmsg.NewFetchResponseTopic()
		row.Topic, row.TopicID = asked.Topic, asked.TopicID
		for j := range asked.Partitions {
			part := kmsg.NewFetchResponseTopicPartition()
			part.Partition = asked.Partitions[j].Partition
			part.HighWatermark, part.LastStableOffset, part.LogStartOffset = -1, -1, -1
			part.RecordBatches = []byte{}
			failure := err
			if failure == nil {
				failure = f.readPartition(ctx, topic, &asked.Partitions[j], &part)
			}
			if failure != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				f.failed = true
				part.ErrorCode = f.c.fetchCode(failure)
			}
			row.Partitions = append(row.Partitions, part)
		}
		f.response.Topics = append(f.response.Topics, row)
	}
	return nil
}

var (
	errOffset = errors.New("offset is outside of the partition")
	errFenced = errors.New("leader epoch is older than the partition's")
	errEpoch  = errors.New("leader epoch is newer than the partition's")
)

func (c *call) fetchCode(err error) code {
	switch {
	case errors.Is(err, errOffset):
		return codeOffsetOutOfRange
	case errors.Is(err, errFenced):
		return codeFencedEpoch
	case errors.Is(err, errEpoch):
		return codeUnknownEpoch
	}
	return c.codeOf(err)
}

// checkEpoch compares what a client knows of the leader; -1 is nothing.
func checkEpoch(epoch int32) error {
	if epoch > 0 {
		return errEpoch
	}
	return nil
}

// readPartition reads from one partition.
func (f *fetching) readPartition(ctx context.Context, topic *messaging.StreamTopic, asked *kmsg.FetchRequestTopicPartition, part *kmsg.FetchResponseTopicPartition) error {
	if err := checkEpoch(asked.CurrentLeaderEpoch); err != nil {
		return err
	}
	if asked.Partition < 0 || asked.Partition >= topic.Partitions() {
		return engine.ErrNoPartition
	}
	if asked.FetchOffset < 0 {
		return errOffset
	}
	from := uint64(asked.FetchOffset)
	b := batches{limit: min(f.left, max(int(asked.PartitionMaxBytes), 0)), first: !f.any}
	extent, err := topic.Read(ctx, asked.Partition, from, b.add)
	if err != nil && b.size() == 0 {
		return err
	}
	if from < extent.First || from > extent.Next {
		return errOffset
	}
	part.HighWatermark, part.LastStableOffset = int64(extent.Next), int64(extent.Next) //nolint:gosec // entries are far below
	part.LogStartOffset = int64(extent.First)                                          //nolint:gosec // as above
	part.RecordBatches = b.finish()
	n := len(part.RecordBatches)
	if n == 0 {
		if from == extent.Next {
			f.marks = append(f.marks, topic.Mark(asked.Partition, from))
		}
		return nil
	}
	f.any = true
	f.bytes += n
	f.left = max(f.left-n, 0)
	topic.Delivered(b.messages, n)
	return nil
}

// batches gathers what is stored into the bytes that a client gets.
type batches struct {
	limit    int
	first    bool // the first batch is taken whatever its size
	out      []byte
	building *records.Builder
	base     uint64 // first offset of what is being built
	messages int
}

func (b *batches) size() int {
	if b.building != nil {
		return b.building.Size() + len(b.out)
	}
	return len(b.out)
}

// add takes one more run or message, and says whether there is room for more.
func (b *batches) add(s *engine.Stored) (bool, error) {
	if s.Run.Count == 0 {
		return b.addMessage(s), nil
	}
	b.flush()
	if len(b.out)+len(s.Run.Body) > b.limit && (len(b.out) > 0 || !b.first) {
		return false, nil
	}
	at := len(b.out)
	b.out = append(b.out, s.Run.Body...)
	records.Place(b.out[at:], int64(s.First), 0) //nolint:gosec // entries are far below
	b.messages += int(s.Run.Count)
	return len(b.out) < b.limit, nil
}

// addMessage puts a message that came without a batch into one with its
// neighbours.
func (b *batches) addMessage(s *engine.Stored) bool {
	if b.building != nil && (b.building.Count() >= maxBuiltRecords || b.building.Size() >= maxBuiltBytes) {
		b.flush()
	}
	if b.size()+len(s.Record.Payload) > b.limit && (b.size() > 0 || !b.first) {
		return false
	}
	if b.building == nil {
		b.building, b.base = records.NewBuilder(nil, int64(s.First)), s.First //nolint:gosec // entries are far below
	}
	b.building.Add(recordOf(s, int32(s.First-b.base))) //nolint:gosec // at most a thousand
	b.messages++
	return b.size() < b.limit
}

// flush ends the batch that is being built.
func (b *batches) flush() {
	if b.building != nil {
		b.out = append(b.out, b.building.Finish()...)
		b.building = nil
	}
}

func (b *batches) finish() []byte {
	b.flush()
	if b.out == nil {
		return []byte{}
	}
	return b.out
}

// recordOf is a message as clients of the stream protocol see it
// (docs/spec/stream.md#mapping).
func recordOf(s *engine.Stored, delta int32) *records.Record {
	m := &s.Record.Message
	r := &records.Record{Delta: delta, Time: m.Timestamp(s.PublishTime), Value: m.Payload}
	if m.Payload == nil {
		r.Value = []byte{}
	}
	if m.NullPayload {
		r.Value = nil
	}
	if m.Key != "" || m.EmptyKey {
		r.Key = []byte(m.Key)
	}
	for i := range m.Properties {
		h := records.Header{Key: []byte(m.Properties[i].Key), Value: []byte(m.Properties[i].Value)}
		if m.Properties[i].Null {
			h.Value = nil
		}
		r.Headers = append(r.Headers, h)
	}
	return r
}
