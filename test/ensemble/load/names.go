package load

import (
	"context"
	"fmt"
	"strconv"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet.dev/client/schemas"
	"freshet/test/ensemble/history"
)

const (
	organization = "default"
	robot        = "robot"
)

// Prefixes of Object in the history.
const (
	topicPrefix   = "topic "
	accountPrefix = "account "
)

// nameTopics creates, deletes and looks up topics that other workers create and delete
// too. A name is used for some seconds only.
func (w *worker) nameTopics(ctx context.Context) {
	for w.pause(ctx) {
		name := fmt.Sprintf("name-%d-%d", int(w.recorder.Now().Seconds())/3, w.rand.IntN(4))
		m := w.any()
		topic := m.client.Topic(name)
		var op history.Op
		start := w.recorder.Now()
		switch w.rand.IntN(4) {
		case 0:
			w.noteCreated(topicPrefix + name)
			op = w.op(m, history.Create, topicPrefix+name, topic.Create(ctx, client.TopicOptions{}), client.ErrConflict)
		case 1:
			op = w.op(m, history.Delete, topicPrefix+name, topic.Delete(ctx, true), client.ErrNotFound)
		default:
			op = w.lookTopic(ctx, m, name)
		}
		w.recorder.Add(start, op)
	}
}

func (w *worker) lookTopic(ctx context.Context, m *member, name string) history.Op {
	_, err := m.client.Topic(name).Partitions(ctx)
	return w.op(m, history.Lookup, topicPrefix+name, err, client.ErrNotFound)
}

// nameAccounts creates accounts and looks them up at other members.
func (w *worker) nameAccounts(ctx context.Context) {
	for w.longPause(ctx) {
		name := fmt.Sprintf("account-%d", w.next)
		object := map[string]any{
			"apiVersion": resources.ServiceAccounts.APIVersion(), "kind": "ServiceAccount",
			"metadata": map[string]any{"name": name},
		}
		w.noteCreated(accountPrefix + name)
		m := w.any()
		start := w.recorder.Now()
		_, err := m.resources.Create(ctx, resources.ServiceAccounts, organization, object, resources.WriteOptions{})
		w.recorder.Add(start, w.op(m, history.Create, accountPrefix+name, err, client.ErrConflict))
		for range 2 {
			m, start = w.any(), w.recorder.Now()
			w.recorder.Add(start, w.lookAccount(ctx, m, name))
		}
	}
}

func (w *worker) lookAccount(ctx context.Context, m *member, name string) history.Op {
	_, err := m.resources.Get(ctx,
		resources.Ref{Kind: resources.ServiceAccounts, Organization: organization, Name: name})
	return w.op(m, history.Lookup, accountPrefix+name, err, client.ErrNotFound)
}

// noteCreated records a name that a client may have created.
func (l *Load) noteCreated(thing string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[thing] = true
}

// register registers schemas, possibly the same as another worker, and reads them at
// other members.
func (w *worker) register(ctx context.Context) {
	for w.longPause(ctx) {
		subject := fmt.Sprintf("subject-%d", w.next)
		text := fmt.Sprintf(`{"type":"enum","name":"E","symbols":["S%d"]}`, w.next)
		m := w.any()
		start := w.recorder.Now()
		id, err := m.registry.Register(ctx, subject, schemas.Schema{Text: text})
		op := w.op(m, history.Register, subject, err)
		op.Value = text
		if err == nil {
			op.ID = strconv.Itoa(id)
			w.mu.Lock()
			w.ids[op.ID] = text
			w.mu.Unlock()
		}
		w.recorder.Add(start, op)
		if err == nil {
			w.readSchema(ctx, w.any(), id)
		}
	}
}

func (w *worker) readSchema(ctx context.Context, m *member, id int) history.Outcome {
	start := w.recorder.Now()
	schema, err := m.registry.ByID(ctx, id)
	op := w.op(m, history.Read, "", err, client.ErrNotFound)
	op.ID = strconv.Itoa(id)
	if err == nil {
		op.Value = schema.Text
	}
	w.recorder.Add(start, op)
	return op.Outcome
}
