package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/cluster/history"
)

// ofStream keeps what is told of offsets apart from what is told of message ids.
func ofStream(topic string) string { return "stream " + topic }

func (w *worker) stream(opts ...kgo.Opt) (*kgo.Client, error) {
	seeds := make([]string, len(w.members))
	for i, m := range w.members {
		seeds[i] = m.Stream
	}
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.SASL(plain.Auth{User: "user", Pass: "token:" + w.o.Token}.AsMechanism()),
	}, opts...)...)
}

// produceStream sends records by an idempotent producer that waits for all copies
// (the library's default) and repeats by itself: a record is in the topic once. The
// last record may take until lasting ends.
func (w *worker) produceStream(ctx, lasting context.Context, topic string) {
	c, err := w.stream(kgo.DefaultProduceTopic(topic))
	if err != nil {
		panic(err) // options that cannot be
	}
	defer c.Close()
	for w.pause(ctx) {
		record := &kgo.Record{Key: []byte(w.name), Value: fmt.Appendf(nil, "%s/%d", w.name, w.next)}
		start := w.recorder.Now()
		err := c.ProduceSync(lasting, record).FirstErr()
		op := history.Op{Kind: history.Produce, Client: w.name, Thing: ofStream(topic), Outcome: history.OK, Value: string(record.Value)}
		if err != nil {
			op.Outcome, op.Note = history.Unknown, err.Error()
		} else {
			op.ID = offsetID(record)
			w.expect(ofStream(topic), op.Value, reader)
		}
		w.recorder.Add(start, op)
	}
}

// readStream reads every partition from its beginning.
func (w *worker) readStream(ctx context.Context, topic string) {
	c, err := w.stream(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		panic(err) // options that cannot be
	}
	defer c.Close()
	for ctx.Err() == nil {
		start := w.recorder.Now()
		c.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			op := history.Op{Kind: history.Receive, Client: w.name, Thing: ofStream(topic), Outcome: history.OK, Subscription: reader, ID: offsetID(record), Value: string(record.Value)}
			w.saw(ofStream(topic), reader, op.Value)
			w.recorder.Add(start, op)
		})
	}
}

func offsetID(record *kgo.Record) string {
	return fmt.Sprintf("0:%d:%d:0", record.Offset, record.Partition)
}

// commit commits the position of a group that nobody is a member of, higher each
// time, and reads it.
func (w *worker) commit(ctx context.Context, group, topic string) {
	c, err := w.stream()
	if err != nil {
		panic(err) // options that cannot be
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	for w.rest(ctx) {
		op := history.Op{Kind: history.Commit, Client: w.name, Thing: group, Value: strconv.Itoa(w.next)}
		start := w.recorder.Now()
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: int64(w.next)})
		err := bounded(ctx, w.o.Timeout, func(ctx context.Context) error { return admin.CommitAllOffsets(ctx, group, offsets) })
		op.Outcome, op.Note = streamOutcome(err)
		w.recorder.Add(start, op)

		op, start = history.Op{Kind: history.Position, Client: w.name, Thing: group, Value: "0"}, w.recorder.Now()
		err = bounded(ctx, w.o.Timeout, func(ctx context.Context) error {
			answer, err := admin.FetchOffsets(ctx, group)
			if err != nil {
				return err
			}
			if found, ok := answer.Lookup(topic, 0); ok {
				op.Value, err = strconv.FormatInt(found.At, 10), found.Err
			}
			return err
		})
		op.Outcome, op.Note = streamOutcome(err)
		w.recorder.Add(start, op)
	}
}

func bounded(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return call(ctx)
}

// streamOutcome is what an error of the stream protocol says: codes that clients are
// not to repeat are none that these calls may get.
func streamOutcome(err error) (history.Outcome, string) {
	var code *kerr.Error
	switch {
	case err == nil:
		return history.OK, ""
	case errors.As(err, &code) && !code.Retriable:
		return history.Absurd, err.Error()
	default:
		return history.Unknown, err.Error()
	}
}
