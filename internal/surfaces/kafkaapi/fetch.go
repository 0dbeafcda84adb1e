package kafkaapi

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

const (
	maxFetchBytes = 55 << 20
	fetchesAtOnce = 8
	maxFetchWait  = 60 * time.Second
)

// fetching is a Fetch request in progress.
type fetching struct {
	c        *call
	request  *kmsg.FetchRequest
	response *fetchResponse
	// wanted are the partitions to read, in this order: those of the session or of the request.
	wanted []*wantedPartition
	// onlyNews omits partitions that have not changed since the last response of the session.
	onlyNews bool

	topics map[topicKey]*fetchedTopic
	left   int  // remaining bytes of the response
	any    bool // the response contains a batch
	failed bool // a partition has an error, so the response does not wait
	bytes  int
	marks  []engine.Mark // ends of the partitions that were read to their end
	pause  time.Duration // backoff before new messages are read
}

// fetchedTopic is a topic of a request. It is looked up once.
type fetchedTopic struct {
	*messaging.StreamTopic
	err error

	messages, bytes int // in the response
}

// takeFetch starts a Fetch request.
func takeFetch(_ context.Context, c *call) answer {
	request, _ := c.request.(*kmsg.FetchRequest)
	made := &fetchResponse{version: c.version}
	return answer{
		make: func(ctx context.Context) (encodable, error) { return made, fetch(ctx, c, request, made) },
		free: made.reset,
	}
}

func fetch(ctx context.Context, c *call, request *kmsg.FetchRequest, response *fetchResponse) error {
	if request.ReplicaID >= 0 {
		response.errorCode = codeInvalidRequest // replication is not served over this protocol
		return nil
	}
	partitions := partitionsIn(request.Topics, func(t *kmsg.FetchRequestTopic) int { return len(t.Partitions) })
	if err := within(len(request.Topics), partitions); err != nil {
		c.refuseFetch(request, response, err)
		return nil
	}
	f := fetching{c: c, request: request, response: response}
	if err := f.plan(); err != nil {
		c.refuseFetch(request, response, err)
		return nil
	}
	if err := f.run(ctx); err != nil {
		return err
	}
	for _, topic := range f.topics {
		if topic.bytes > 0 {
			topic.Delivered(topic.messages, topic.bytes)
		}
	}
	f.told()
	return nil
}

// refuseFetch rejects a whole request.
func (c *call) refuseFetch(request *kmsg.FetchRequest, response *fetchResponse, err error) {
	response.errorCode = c.fetchCode(err)
	if c.version >= 7 {
		return
	}
	for _, w := range wantedOf(request) { // older versions have no code for the whole response
		part := newFetchResponsePartition(w.partition)
		part.errorCode = response.errorCode
		response.add(w.topicKey, &part)
	}
}

// run reads, and waits while there are fewer bytes than the client requires.
func (f *fetching) run(ctx context.Context) error {
	c, request := f.c, f.request
	deadline := time.Now().Add(min(time.Duration(request.MaxWaitMillis)*time.Millisecond, maxFetchWait))
	for over := false; ; {
		f.response.reset()
		f.topics, f.marks = make(map[topicKey]*fetchedTopic), nil
		f.any, f.failed, f.bytes = false, false, 0
		if f.left = min(int(request.MaxBytes), maxFetchBytes); f.left <= 0 {
			f.left = maxFetchBytes
		}
		if err := f.readWithRoom(ctx); err != nil {
			return err
		}
		if f.bytes >= int(request.MinBytes) || f.failed || len(f.marks) == 0 || over || time.Until(deadline) <= 0 {
			return nil
		}
		// A large result is released during the wait and read again afterwards.
		given := c.reserved.bytes > 0
		if given {
			f.response.reset()
			f.topics = nil
			c.reserved.release()
			c.reserved = holding{}
		}
		more, err := f.await(ctx, deadline)
		switch {
		case err != nil:
			return err
		case !more && !given:
			return nil
		case !c.session.who.Live():
			return errRevoked
		}
		if over = !more; more && given {
			f.calm(ctx, deadline)
		}
	}
}

// calm limits how often a waiting client's large result is read again when new messages arrive: to
// 64 MiB per second.
func (f *fetching) calm(ctx context.Context, deadline time.Time) {
	pause := min(time.Duration(f.bytes)*time.Second/(64<<20), time.Until(deadline))
	select {
	case <-time.After(pause):
	case <-f.c.conn.server.draining.Done():
	case <-ctx.Done():
	}
}

// readWithRoom reads, for a limited number of clients at a time, and reserves memory for the result
// before it lets the next client read.
func (f *fetching) readWithRoom(ctx context.Context) error {
	c := f.c
	if err := c.conn.server.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.conn.server.reading.Release(1)
	if err := f.read(ctx); err != nil || f.bytes <= smallFrame {
		return err
	}
	held, err := c.conn.hold(ctx, c.conn.server.answers, int64(f.bytes))
	c.reserved = held
	return err
}

// await waits for messages at the ends of the partitions; false when the deadline has passed.
func (f *fetching) await(ctx context.Context, deadline time.Time) (bool, error) {
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(f.c.conn.server.draining, cancel)()
	err := f.c.session.cluster.Broker.Grown(waiting, f.marks)
	switch {
	case err == nil && f.bytes > 0:
		// Exponential backoff, so that a slow trickle of messages does not repeat the read for each
		// one.
		f.pause = max(2*f.pause, time.Millisecond)
		select {
		case <-time.After(f.pause):
		case <-waiting.Done():
		}
		return true, ctx.Err()
	case err == nil, errors.Is(err, engine.ErrNoTopic):
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, nil // the deadline has passed, or the broker drains
}

// read fills the response with the available batches.
func (f *fetching) read(ctx context.Context) error {
	for _, w := range f.wanted {
		topic := f.topic(ctx, w.topicKey)
		part := newFetchResponsePartition(w.partition)
		failure := topic.err
		if failure == nil {
			failure = f.readPartition(ctx, topic, w, &part)
		}
		if failure != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.failed = true
			part.errorCode = f.c.fetchCode(failure)
			f.c.hintConsumer(f.response, &part, topic, failure)
		}
		if f.onlyNews && !w.news(&part) {
			continue
		}
		f.response.add(w.topicKey, &part)
	}
	return nil
}

// topic looks a topic up, once for all of its partitions.
func (f *fetching) topic(ctx context.Context, key topicKey) *fetchedTopic {
	found := f.topics[key]
	if found == nil {
		found = &fetchedTopic{}
		found.StreamTopic, found.err = f.c.topicBy(ctx, key.topic, key.id, permitConsume)
		f.topics[key] = found
	}
	return found
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

// readPartition reads the batches of one partition.
func (f *fetching) readPartition(ctx context.Context, topic *fetchedTopic, asked *wantedPartition,
	part *fetchResponsePartition,
) error {
	if err := f.c.leads(topic.StreamTopic, asked.leaderEpoch); err != nil {
		return err
	}
	if asked.partition < 0 || asked.partition >= topic.Partitions() {
		return engine.ErrNoPartition
	}
	if asked.offset < 0 {
		return errOffset
	}
	from := uint64(asked.offset)
	b := batches{limit: min(f.left, max(int(asked.maxBytes), 0)), first: !f.any}
	extent, err := topic.Read(ctx, asked.partition, from, b.add)
	if err != nil && (b.size() == 0 || extent.Next == 0) { // without an extent the offset cannot be checked
		return err
	}
	if from < extent.First || from > extent.Next {
		return errOffset
	}
	part.highWatermark = int64(extent.Next) //nolint:gosec // offsets are far below 2^63
	part.logStart = int64(extent.First)     //nolint:gosec // offsets are far below 2^63
	b.flush()
	n := b.out.size
	if n == 0 {
		if from == extent.Next {
			f.marks = append(f.marks, topic.Mark(asked.partition, from))
		}
		return nil
	}
	part.batches = b.out
	f.any = true
	f.bytes += n
	f.left = max(f.left-n, 0)
	topic.messages += b.messages
	topic.bytes += n
	if !b.full && err == nil {
		f.marks = append(f.marks, topic.Mark(asked.partition, b.next))
	}
	return nil
}
