package load

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"freshet/client"
	"freshet/test/cluster/history"
)

// Bounds of one call to consume, and of the lease that it gives.
const (
	batch = 20
	wait  = 300 * time.Millisecond
	lease = 3 * time.Second
)

// produce sends messages of one key, one after another. Without an idempotency key
// each is sent once; with one it is sent until that succeeds, at whichever member.
func (w *worker) produce(ctx context.Context, topic string, idempotent bool) {
	for w.pause(ctx) {
		value := fmt.Sprintf("%s/%d", w.name, w.next)
		for {
			m := w.any()
			start := w.recorder.Now()
			id, err := produceOnce(ctx, m.client, topic, w.name, value, idempotent)
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", client.ErrUnavailable, err)
			}
			op := w.op(m, history.Produce, topic, err)
			op.Value, op.ID = value, id
			if err == nil {
				w.expect(topic, value, shared, alone)
			}
			w.recorder.Add(start, op)
			if err == nil || !idempotent || !w.pause(ctx) {
				break
			}
		}
	}
}

func produceOnce(ctx context.Context, c *client.Client, topic, key, value string, idempotent bool) (string, error) {
	if idempotent {
		produced, err := c.Topic(topic).Produce(ctx, client.Message{Key: key, Value: []byte(value), IdempotencyKey: value})
		return produced.StringID, err
	}
	response, err := c.Do(ctx, &client.Request{
		Method: http.MethodPost, Path: "/admin/rest/topics/v1/public/default/" + topic + "/message", Body: []byte(value),
		Header: http.Header{"Content-Type": {"application/octet-stream"}, "X-Msg-Partition-Key": {key}},
	})
	if err != nil {
		return "", err
	}
	return response.Header.Get("X-Msg-Message-String-Id"), nil
}

// consume takes messages and acknowledges them.
func (w *worker) consume(ctx context.Context, topic, subscription string) {
	for w.pause(ctx) {
		m := w.any()
		start := w.recorder.Now()
		received, err := m.client.Topic(topic).Subscription(subscription).Fetch(ctx, batch, wait, lease)
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
			ops[i].Subscription, ops[i].ID, ops[i].Value = subscription, received[i].StringID, string(received[i].Value)
			w.saw(topic, subscription, ops[i].Value)
		}
		w.recorder.Add(start, ops...)
		w.acknowledge(ctx, topic, subscription, received)
	}
}

// acknowledge does so once, at another member perhaps; what fails comes again.
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

// expect notes an acknowledged message, saw one that was delivered.
func (l *Load) expect(topic, value string, subscriptions ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, subscription := range subscriptions {
		if p := (place{topic, subscription, value}); !l.seen[p] {
			l.acked[p] = true
		}
	}
}

func (l *Load) saw(topic, subscription, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := place{topic, subscription, value}
	l.seen[p] = true
	delete(l.acked, p)
}

// outstanding is how many messages have yet to be seen.
func (l *Load) outstanding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}
