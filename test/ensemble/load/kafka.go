package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/ensemble/history"
)

// historyName returns the history's name of a Kafka topic, which separates offsets from message ids.
func historyName(topic string) string { return "stream " + topic }

func (w *worker) kafkaClient(opts ...kgo.Opt) (*kgo.Client, error) {
	seeds := make([]string, len(w.members))
	for i, m := range w.members {
		seeds[i] = m.Kafka
	}
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.SASL(plain.Auth{User: "user", Pass: "token:" + w.o.Token}.AsMechanism()),
	}, opts...)...)
}

// kafkaPauses is the number of pauses between two records of a Kafka producer: there are
// many of these producers.
const kafkaPauses = 4

// produceKafka sends records to random partitions with an idempotent producer that
// requires acks from all replicas (the library's default) and retries internally, so a
// record is stored once. The last record may take until lasting ends.
func (w *worker) produceKafka(ctx, lasting context.Context, to kafkaTopic) {
	c, err := w.producer()
	if err != nil {
		panic(err) // the options are always valid
	}
	defer c.Close()
	for w.pauseFor(ctx, kafkaPauses*w.o.Pause) {
		partition := int32(w.rand.IntN(to.partitions))
		_ = w.send(lasting, c, to.topic, partition, w.recordSize()) // the history contains the error
	}
}

func (w *worker) producer() (*kgo.Client, error) {
	return w.kafkaClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

// send produces the worker's next record.
func (w *worker) send(ctx context.Context, c *kgo.Client, topic string, partition int32, size int) error {
	value, identity := w.content(topic, partition, size)
	record := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(w.name), Value: value}
	start := w.recorder.Now()
	err := c.ProduceSync(ctx, record).FirstErr()
	op := history.Op{
		Kind: history.Produce, Client: w.name, Object: historyName(topic), Outcome: history.OK, Value: identity,
	}
	if err != nil {
		op.Outcome, op.Note = history.Unknown, err.Error()
	} else {
		op.ID = offsetID(record)
		w.noteAcknowledged(historyName(topic), op.Value, w.kafkaReaders...)
	}
	w.recorder.Add(start, op)
	return err
}

// backlog stores large records in every partition before the readers start, so that their
// first fetches return much data from many partitions.
func (l *Load) backlog(ctx context.Context) error {
	w := &worker{Load: l, name: "backlog", rand: rand.New(rand.NewPCG(l.o.Seed, 0))}
	c, err := w.producer()
	if err != nil {
		return err
	}
	defer c.Close()
	for range 2 {
		for _, s := range l.kafkaTopics {
			for partition := range s.partitions {
				w.next++
				if err := w.send(ctx, c, s.topic, int32(partition), w.largeSize()); err != nil {
					return fmt.Errorf("producing to topic %s: %w", s.topic, err)
				}
			}
		}
	}
	return nil
}

// recordSize returns usually some hundred bytes. Some records are larger than 64 KiB, so
// that a Fetch response consists of several parts: every tenth at first, when many
// partitions have data to read, and fewer later, because a long run must fit on the small
// disk of one member.
func (w *worker) recordSize() int {
	every := 10
	if w.next > manyLarge {
		every = 60
	}
	if w.next%every == 0 {
		return w.largeSize()
	}
	return 100 + w.rand.IntN(900)
}

// manyLarge is the number of records of a producer after which large ones become rare.
const manyLarge = 200

func (w *worker) largeSize() int { return 65<<10 + w.rand.IntN(235<<10) }

// slowPoll is the interval between two polls of the slow reader.
const slowPoll = 300 * time.Millisecond

// slowFetches limits the fetches of the slow reader: partitions are served one after
// another, so the order of a topic's partitions in the fetch session soon changes. The
// limits allow several large records in one response.
var slowFetches = []kgo.Opt{kgo.FetchMaxBytes(1 << 20), kgo.FetchMaxPartitionBytes(350 << 10)}

// groupOptions makes a client a member of a consumer group that commits once a second. It
// waits for large responses, which contain records of many partitions.
var groupOptions = []kgo.Opt{
	kgo.ConsumerGroup(consumerGroup), kgo.AutoCommitInterval(time.Second),
	kgo.FetchMinBytes(500 << 10), kgo.FetchMaxWait(time.Second),
}

func (w *worker) readFast(ctx context.Context) { w.readKafka(ctx, reader, 0) }

func (w *worker) readSlowly(ctx context.Context) { w.readKafka(ctx, slow, slowPoll, slowFetches...) }

func (w *worker) readInGroup(ctx context.Context) {
	w.readKafka(ctx, consumerGroup, 0, groupOptions...)
}

// readKafka consumes all Kafka topics from the start and waits between two polls.
func (w *worker) readKafka(ctx context.Context, subscription string, wait time.Duration, opts ...kgo.Opt) {
	topics := make([]string, len(w.kafkaTopics))
	for i, s := range w.kafkaTopics {
		topics[i] = s.topic
	}
	opts = append([]kgo.Opt{kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, opts...)
	c, err := w.kafkaClient(opts...)
	if err != nil {
		panic(err) // the options are always valid
	}
	defer c.Close()
	for ctx.Err() == nil {
		start := w.recorder.Now()
		var ops []history.Op
		c.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			op := history.Op{
				Kind: history.Receive, Client: w.name, Object: historyName(record.Topic), Outcome: history.OK,
				Subscription: subscription, ID: offsetID(record),
			}
			w.delivered(&op, record.Value, record.Topic, record.Partition, historyName)
			ops = append(ops, op)
		})
		w.recorder.Add(start, ops...)
		if wait > 0 {
			w.pauseFor(ctx, wait)
		}
	}
}

func offsetID(record *kgo.Record) string {
	return fmt.Sprintf("0:%d:%d:0", record.Offset, record.Partition)
}

// commit commits increasing offsets for a consumer group without members, and reads them
// back.
func (w *worker) commit(ctx context.Context, group, topic string) {
	c, err := w.kafkaClient()
	if err != nil {
		panic(err) // the options are always valid
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	for w.longPause(ctx) {
		op := history.Op{Kind: history.Commit, Client: w.name, Object: group, Value: strconv.Itoa(w.next)}
		start := w.recorder.Now()
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: int64(w.next)})
		err := bounded(ctx, w.o.Timeout,
			func(ctx context.Context) error { return admin.CommitAllOffsets(ctx, group, offsets) })
		op.Outcome, op.Note = kafkaOutcome(err)
		w.recorder.Add(start, op)

		w.readPosition(ctx, admin, group, topic)
	}
}

// readPosition reads the committed offset of a group.
func (w *worker) readPosition(ctx context.Context, admin *kadm.Client, group, topic string) history.Op {
	op, start := history.Op{Kind: history.Position, Client: w.name, Object: group, Value: "0"}, w.recorder.Now()
	err := bounded(ctx, w.o.Timeout, func(ctx context.Context) error {
		response, err := admin.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		if found, ok := response.Lookup(topic, 0); ok {
			op.Value, err = strconv.FormatInt(found.At, 10), found.Err
		}
		return err
	})
	op.Outcome, op.Note = kafkaOutcome(err)
	w.recorder.Add(start, op)
	return op
}

func bounded(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return call(ctx)
}

// kafkaOutcome returns the outcome of a Kafka error. Non-retriable error codes are
// unexpected for these calls.
func kafkaOutcome(err error) (history.Outcome, string) {
	var code *kerr.Error
	switch {
	case err == nil:
		return history.OK, ""
	case errors.As(err, &code) && !code.Retriable:
		return history.Unexpected, err.Error()
	default:
		return history.Unknown, err.Error()
	}
}
