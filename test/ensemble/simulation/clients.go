package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"freshet/internal/storage/engine"
)

// owner returns a member that serves a shard, with its engine. Two members may consider themselves the owner;
// it returns any of them, or with random nil the first.
func (w *world) owner(shard int, random *rand.Rand) (*member, engine.Engine) {
	var all []*member
	var engines []engine.Engine
	for _, m := range w.running() {
		if e, err := m.shards[shard].Engine(); err == nil && m.lease.Alive() {
			all, engines = append(all, m), append(engines, e)
		}
	}
	at := 0
	switch {
	case len(all) == 0:
		return nil, nil
	case random != nil:
		at = random.IntN(len(all))
	}
	return all[at], engines[at]
}

// topic is the id of the topic of a shard.
const topic = engine.TopicID(1)

// retainAll keeps all messages, so that every one can be checked.
var retainAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

// write appends messages to a shard until the context ends.
func (w *world) write(ctx context.Context, shard, writer int, pause time.Duration, random *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.Int64N(int64(pause))))
		m, e := w.owner(shard, random)
		if m == nil {
			continue
		}
		text := fmt.Sprintf("%d/%d/%d/%s", shard, writer, i, strings.Repeat("x", random.IntN(400)))
		w.mu.Lock()
		w.sent[shard][text] = true
		w.mu.Unlock()
		call, cancel := context.WithTimeout(ctx, 20*time.Second)
		out, err := e.Append(call, topic, 0, []engine.Message{{Payload: []byte(text)}})
		cancel()
		switch {
		case errors.Is(err, engine.ErrNoTopic):
			_ = e.CreateTopic(ctx, topic, retainAll) // the next append shows whether it exists
		case err == nil && !m.crashed.Load():
			w.acknowledge(shard, out[0].ID, text)
		}
	}
}

// acknowledge notes an acknowledged message.
func (w *world) acknowledge(shard int, id engine.MessageID, text string) {
	w.mu.Lock()
	was, ok := w.acked[shard][id]
	if !ok {
		w.acked[shard][id] = text
	}
	w.mu.Unlock()
	if ok {
		w.violation("shard %d: message %v was acknowledged as %.20q and as %.20q", shard, id, was, text)
	}
}

// readAll reads all messages of a shard. A read returns those before a damaged one, so it reads until nothing is left.
func readAll(ctx context.Context, e engine.Engine) (all []engine.Record, err error) {
	for from := uint64(0); ; from = all[len(all)-1].ID.Entry + 1 {
		got, err := e.Read(ctx, topic, engine.ReadRequest{From: from, Max: 1 << 20})
		if err != nil || len(got) == 0 {
			return all, err
		}
		all = append(all, got...)
	}
}

// read reads a whole shard from its owner until the context ends, and checks that everything is there
// that was acknowledged before.
func (w *world) read(ctx context.Context, shard int, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
		m, e := w.owner(shard, random)
		if m == nil {
			continue
		}
		w.mu.Lock()
		want := make(map[engine.MessageID]string, len(w.acked[shard]))
		for id, text := range w.acked[shard] {
			want[id] = text
		}
		w.mu.Unlock()
		alive := m.lease.Alive()
		got, err := readAll(ctx, e)
		if err != nil || !alive || !m.lease.Alive() || m.crashed.Load() ||
			time.Now().UnixNano() < m.staleUntil.Load() {
			continue
		}
		w.compare(shard, "read at "+m.name, want, got)
	}
}
