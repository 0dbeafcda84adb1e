package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"freshet.dev/client"
	"freshet/test/ensemble/history"
	"freshet/test/stamp"
)

// Limits of one fetch, and the lease of its messages.
const (
	batch     = 20
	fetchWait = 300 * time.Millisecond
	lease     = 3 * time.Second
)

// produce sends messages with one key, one after another. Without an idempotency key each
// is sent once; with one it is retried at random members until it is acknowledged.
func (w *worker) produce(ctx context.Context, topic string, idempotent bool) {
	note := func(op *history.Op) { w.noteAcknowledged(topic, op.Value, shared, single) }
	w.produceAs(ctx, topic, topic, idempotent, note)
}

// produceAs is produce to a topic with another name in the history. It calls note for each
// acknowledged message, before it records it.
func (w *worker) produceAs(ctx context.Context, topic, object string, idempotent bool, note func(*history.Op)) {
	for w.pause(ctx) {
		value, identity := w.content(topic, stamp.AnyPartition, w.messageSize())
		message := client.Message{Key: w.name, Value: value}
		if idempotent {
			message.IdempotencyKey = identity
		}
		for {
			m := w.any()
			start := w.recorder.Now()
			id, err := produceOnce(ctx, m.client, topic, message)
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", client.ErrUnavailable, err)
			}
			op := w.op(m, history.Produce, object, err)
			op.Value, op.ID = identity, id
			if err == nil {
				note(&op)
			}
			w.recorder.Add(start, op)
			if err == nil || !idempotent || !w.pause(ctx) {
				break
			}
		}
	}
}

// content returns the bytes of the worker's next message, and the identity by which the
// history refers to it.
func (w *worker) content(topic string, partition int32, size int) (value []byte, identity string) {
	value = stamp.Stamp{Topic: topic, Partition: partition, Writer: w.name, Number: w.next}.Value(size)
	made, err := stamp.Parse(value)
	if err != nil {
		panic(err) // names of topics and workers are always valid
	}
	return value, made.ID()
}

// messageSize returns usually some hundred bytes, sometimes some KiB.
func (w *worker) messageSize() int {
	if w.next%20 == 0 {
		return 2<<10 + w.rand.IntN(14<<10)
	}
	return 100 + w.rand.IntN(200)
}

// delivered checks the stamp of a received message and completes its operation. name maps
// an origin to the history's name of the topic.
func (w *worker) delivered(op *history.Op, value []byte, topic string, partition int32, name func(string) string) {
	got, err := stamp.Check(value, topic, partition)
	if errors.Is(err, stamp.ErrDamaged) {
		op.Damaged, op.Note = true, err.Error()
		return
	}
	op.Value, op.Origin = got.ID(), name(got.Origin())
	if err == nil {
		w.noteDelivered(op.Object, op.Subscription, op.Value)
	}
}

// produceOnce sends a message. The client library would add an idempotency key, so a
// message without one is sent with a plain request.
func produceOnce(ctx context.Context, c *client.Client, topic string, message client.Message) (string, error) {
	if message.IdempotencyKey != "" {
		produced, err := c.Topic(topic).Produce(ctx, message)
		return produced.StringID, err
	}
	response, err := c.Do(ctx, &client.Request{
		Method: http.MethodPost, Path: "/admin/rest/topics/v1/public/default/" + topic + "/message",
		Body:   message.Value,
		Header: http.Header{"Content-Type": {"application/octet-stream"}, "X-Msg-Partition-Key": {message.Key}},
	})
	if err != nil {
		return "", err
	}
	return response.Header.Get("X-Msg-Message-String-Id"), nil
}

// consume receives messages and acknowledges them.
func (w *worker) consume(ctx context.Context, topic, subscription string) {
	for w.pause(ctx) {
		m := w.any()
		start := w.recorder.Now()
		received, err := m.client.Topic(topic).Subscription(subscription).Fetch(ctx, batch, fetchWait, lease)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			op := w.op(m, history.Receive, topic, err)
			op.Subscription, op.Max = subscription, batch
			w.recorder.Add(start, op)
			continue
		}
		if len(received) == 0 {
			continue
		}
		ops := make([]history.Op, len(received))
		for i := range received {
			ops[i] = w.op(m, history.Receive, topic, nil)
			ops[i].Subscription, ops[i].ID = subscription, received[i].StringID
			w.delivered(&ops[i], received[i].Value, topic, stamp.AnyPartition, strings.Clone)
		}
		w.recorder.Add(start, ops...)
		w.acknowledge(ctx, topic, subscription, received)
	}
}

// acknowledge makes one attempt at a random member; messages whose ack fails are redelivered.
func (w *worker) acknowledge(ctx context.Context, topic, subscription string, received []client.Received) {
	ids := make([]string, len(received))
	for i := range received {
		ids[i] = received[i].ID
	}
	m := w.any()
	start := w.recorder.Now()
	err := m.client.Topic(topic).Subscription(subscription).Ack(ctx, ids...)
	if err != nil && ctx.Err() != nil {
		return
	}
	ops := make([]history.Op, len(received))
	for i := range received {
		ops[i] = w.op(m, history.Ack, topic, err)
		ops[i].Subscription, ops[i].ID = subscription, received[i].StringID
	}
	w.recorder.Add(start, ops...)
}

// noteAcknowledged records an acknowledged message, noteDelivered a delivered one.
func (l *Load) noteAcknowledged(topic, value string, subscriptions ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, subscription := range subscriptions {
		if p := (delivery{topic, subscription, value}); !l.seen[p] {
			l.acked[p] = true
		}
	}
}

func (l *Load) noteDelivered(topic, subscription, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := delivery{topic, subscription, value}
	l.seen[p] = true
	delete(l.acked, p)
}

// outstanding returns the number of acknowledged messages that were not delivered yet.
func (l *Load) outstanding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}
