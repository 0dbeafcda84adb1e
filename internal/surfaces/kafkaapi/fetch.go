package kafkaapi

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/retry"
	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

const (
	maxFetchBytes        = 55 << 20
	maxConcurrentFetches = 8
	maxFetchWait         = 60 * time.Second
)

// fetchCall is a Fetch request in progress.
type fetchCall struct {
	c        *call
	request  *kmsg.FetchRequest
	response *fetchResponse
	// partitions are the partitions to read, in this order: those of the session or of the request.
	partitions []*fetchPartition
	// incremental omits partitions that have not changed since the last response of the session.
	incremental bool

	topics    map[topicKey]*fetchedTopic
	bytesLeft int  // remaining bytes of the response
	hasBatch  bool // the response contains a batch
	failed    bool // a partition has an error, so the response does not wait
	bytes     int
	ends      []engine.PartitionPosition // ends of the partitions that were read to their end
	backoff   time.Duration              // backoff before new messages are read

	missing int  // room that the first batch needs and did not get, bytes; 0 if it got its room
	partial bool // the response ends early because there is no more room
}

// fetchedTopic is a topic of a request. It is looked up once.
type fetchedTopic struct {
	*messaging.KafkaTopic
	err error

	messages, bytes int // in the response
}

// beginFetch starts a Fetch request.
func beginFetch(_ context.Context, c *call) pendingResponse {
	request, _ := c.request.(*kmsg.FetchRequest)
	response := &fetchResponse{version: c.version}
	return pendingResponse{
		build: func(ctx context.Context) (encodable, error) { return response, fetch(ctx, c, request, response) },
		free:  response.reset,
	}
}

func fetch(ctx context.Context, c *call, request *kmsg.FetchRequest, response *fetchResponse) error {
	if request.ReplicaID >= 0 {
		response.errorCode = codeInvalidRequest // replication is not served over this protocol
		return nil
	}
	partitions := partitionsIn(request.Topics, func(t *kmsg.FetchRequestTopic) int { return len(t.Partitions) })
	if err := checkRequestSize(len(request.Topics), partitions); err != nil {
		c.rejectFetch(request, response, err)
		return nil
	}
	f := fetchCall{c: c, request: request, response: response}
	if err := f.plan(); err != nil {
		c.rejectFetch(request, response, err)
		return nil
	}
	if err := f.execute(c.workContext(ctx)); err != nil {
		return err
	}
	for _, topic := range f.topics {
		if topic.bytes > 0 {
			topic.CountDelivered(topic.messages, topic.bytes)
		}
	}
	f.updateSession()
	return nil
}

// rejectFetch rejects a whole request.
func (c *call) rejectFetch(request *kmsg.FetchRequest, response *fetchResponse, err error) {
	response.errorCode = c.fetchCode(err)
	if c.version >= 7 {
		return
	}
	for _, w := range requestedPartitions(request) { // older versions have no code for the whole response
		part := newFetchResponsePartition(w.partition)
		part.errorCode = response.errorCode
		response.add(w.topicKey, &part)
	}
}

// execute reads, and waits while there are fewer bytes than the client requires.
func (f *fetchCall) execute(ctx context.Context) error {
	c, request := f.c, f.request
	deadline := time.Now().Add(min(time.Duration(request.MaxWaitMillis)*time.Millisecond, maxFetchWait))
	for over := false; ; {
		if err := f.readWithRoom(ctx); err != nil {
			return err
		}
		if f.bytes >= int(request.MinBytes) || f.failed || f.partial || len(f.ends) == 0 || over ||
			time.Until(deadline) <= 0 {
			return nil
		}
		// A large result is released during the wait and read again afterwards.
		given := c.room.bytes() > 0
		if given {
			f.response.reset()
			f.topics = nil
			c.room.release()
		}
		more, err := f.awaitAppend(ctx, deadline)
		switch {
		case err != nil:
			return err
		case !more && !given:
			return nil
		case !c.session.principal.Live():
			return errRevoked
		}
		if over = !more; more && given {
			f.limitRereads(ctx, deadline)
		}
	}
}

// limitRereads limits how often a waiting client's large result is read again when new messages arrive: to
// 64 MiB per second.
func (f *fetchCall) limitRereads(ctx context.Context, deadline time.Time) {
	pause := min(time.Duration(f.bytes)*time.Second/(64<<20), time.Until(deadline))
	_ = retry.Wait(ctx, f.c.conn.server.draining.Done(), pause)
}

// readWithRoom reads as many batches as have room. Only if the first batch has none, it waits for room, without a
// permit and without the result, and reads again.
func (f *fetchCall) readWithRoom(ctx context.Context) error {
	c := f.c
	for {
		f.response.reset()
		f.topics, f.ends = make(map[topicKey]*fetchedTopic), nil
		f.hasBatch, f.failed, f.partial, f.bytes, f.missing = false, false, false, 0, 0
		f.bytesLeft = min(max(int(f.request.MaxBytes), 0), maxFetchBytes)
		permit, err := c.conn.takePermit(ctx, c.conn.server.fetchLimiter, c.session)
		if err != nil {
			return err
		}
		err = f.read(ctx)
		permit.release()
		if err != nil {
			return err
		}
		if f.missing == 0 {
			c.room.shrink(int64(f.bytes))
			return nil
		}
		f.response.reset()
		f.topics = nil
		if err := c.room.await(ctx, int64(f.missing)); err != nil {
			return err
		}
	}
}

// reserve takes room for n more bytes of batches of a partition that has some bytes. It does not wait.
func (f *fetchCall) reserve(has, n int) bool {
	if f.c.room.fit(int64(f.bytes+has+n), int64(f.bytes+max(f.bytesLeft, has+n))) {
		return true
	}
	if f.partial = f.bytes+has > 0; !f.partial {
		f.missing = n
	}
	f.bytesLeft = 0
	return false
}

// awaitAppend waits for messages at the ends of the partitions; false when the deadline has passed.
func (f *fetchCall) awaitAppend(ctx context.Context, deadline time.Time) (bool, error) {
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(f.c.conn.server.draining, cancel)()
	err := f.c.session.cluster.Appends.WaitForAppend(waiting, f.ends)
	switch {
	case err == nil && f.bytes > 0:
		// Exponential backoff, so that a slow trickle of messages does not repeat the read for each
		// one.
		f.backoff = max(2*f.backoff, time.Millisecond)
		_ = retry.Sleep(waiting, f.backoff)
		return true, ctx.Err()
	case err == nil, errors.Is(err, engine.ErrNoTopic):
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, nil // the deadline has passed, or the broker drains
}

// read fills the response with the available batches.
func (f *fetchCall) read(ctx context.Context) error {
	for _, w := range f.partitions {
		topic := f.topic(ctx, w.topicKey)
		part := newFetchResponsePartition(w.partition)
		failure := topic.err
		if failure == nil {
			failure = f.readPartition(ctx, topic, w, &part)
		}
		if f.missing > 0 {
			part.batches.free()
			return nil // it is read again
		}
		if failure != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.failed = true
			part.errorCode = consumerCode(f.c.fetchCode(failure))
			f.c.addFetchLeaderHint(f.response, &part, topic, failure)
		}
		if f.incremental && !w.changed(&part) {
			continue
		}
		f.response.add(w.topicKey, &part)
	}
	return nil
}

// topic looks a topic up, once for all of its partitions.
func (f *fetchCall) topic(ctx context.Context, key topicKey) *fetchedTopic {
	found := f.topics[key]
	if found == nil {
		found = &fetchedTopic{}
		found.KafkaTopic, found.err = f.c.topicBy(ctx, key.topic, key.id, permitConsume)
		f.topics[key] = found
	}
	return found
}

var (
	errOffsetOutOfRange   = errors.New("offset is outside of the partition")
	errFencedLeaderEpoch  = errors.New("leader epoch is older than the partition's")
	errUnknownLeaderEpoch = errors.New("leader epoch is newer than the partition's")
)

func (c *call) fetchCode(err error) code {
	switch {
	case errors.Is(err, errOffsetOutOfRange):
		return codeOffsetOutOfRange
	case errors.Is(err, errFencedLeaderEpoch):
		return codeFencedEpoch
	case errors.Is(err, errUnknownLeaderEpoch):
		return codeUnknownEpoch
	case errors.Is(err, unpacking.ErrBusy):
		return codeStorage // consumers retry it; the code for producers would end them
	}
	return c.codeOf(err)
}

// consumerCode returns the code of a partition in a Fetch response for the code of an error. Kafka's consumer ends with
// an exception when it receives one of the others here, although the error passes.
func consumerCode(of code) code {
	switch of {
	case codeNoLeader, codeNotAvailable:
		return codeNotLeader
	case codeNotEnoughReplicas, codeTimedOut:
		return codeStorage
	}
	return of
}

// readPartition reads the batches of one partition.
func (f *fetchCall) readPartition(ctx context.Context, topic *fetchedTopic, requested *fetchPartition,
	part *fetchResponsePartition,
) error {
	if err := f.c.checkLeader(topic.KafkaTopic, requested.leaderEpoch); err != nil {
		return err
	}
	if !topic.HasPartition(requested.partition) {
		return engine.ErrNoPartition
	}
	if _, current := f.c.leader(topic.KafkaTopic); requested.offset < 0 || requested.lastEpoch > current {
		return errOffsetOutOfRange
	}
	from := uint64(requested.offset)
	b := batches{
		limit: min(f.bytesLeft, max(int(requested.maxBytes), 0)), acceptFirst: !f.hasBatch,
		reserve: f.reserve,
	}
	extent, err := topic.Read(ctx, requested.partition, from, b.add)
	if err != nil && (b.size() == 0 || extent.Next == 0) { // without an extent the offset cannot be checked
		return err
	}
	diverges := from > extent.Next && requested.lastEpoch >= 0
	if (from < extent.First || from > extent.Next) && !diverges {
		return errOffsetOutOfRange
	}
	part.highWatermark = int64(extent.Next) //nolint:gosec // offsets are far below 2^63
	part.logStart = int64(extent.First)     //nolint:gosec // offsets are far below 2^63
	if diverges {
		part.diverging.Epoch, part.diverging.EndOffset = requested.lastEpoch, part.highWatermark
		f.failed = true // the client needs the response at once
		return nil
	}
	b.flush()
	n := b.out.size
	if n == 0 {
		if from == extent.Next {
			f.ends = append(f.ends, topic.PositionAt(requested.partition, from))
		}
		return nil
	}
	part.batches = b.out
	f.hasBatch = true
	f.bytes += n
	f.bytesLeft = max(f.bytesLeft-n, 0)
	topic.messages += b.messages
	topic.bytes += n
	if !b.full && err == nil {
		f.ends = append(f.ends, topic.PositionAt(requested.partition, b.next))
	}
	return nil
}
