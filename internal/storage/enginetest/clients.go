package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"freshet/internal/storage/engine"
)

// producer appends messages to the topics of a history, with a deduplication key where the
// topic deduplicates.
type producer struct {
	h    *history
	name string
	next uint64
	mine []*keyedMessage
}

type keyedMessage struct {
	*sentMessage
	part int32
	msg  engine.Message
}

func newProducer(h *history, n int) *producer {
	return &producer{h: h, name: fmt.Sprintf("producer-%d", n)}
}

func (p *producer) step(rng *rand.Rand) {
	topics := p.h.topics()
	topic, part := topics[rng.IntN(len(topics))], int32(0)
	if topic == logTopic {
		part = int32(rng.IntN(2))
	}
	var msgs []engine.Message
	var names []string
	for range 1 + rng.IntN(3) {
		payload := fmt.Sprintf("%s/%d/%s", p.name, p.next, strings.Repeat("x", rng.IntN(600)))
		names = append(names, payload)
		m := engine.Message{Payload: []byte(payload)}
		if topic == logTopic {
			m.Dedup = engine.DedupKey{Producer: p.name, Sequence: p.next}
		}
		msgs = append(msgs, m)
		p.next++
	}
	b := p.h.noteSent(topic, names...)
	if topic == logTopic {
		for i := range msgs {
			p.mine = append(p.mine, &keyedMessage{b.msgs[i], part, msgs[i]})
		}
	}
	var wg sync.WaitGroup
	if topic == logTopic && rng.IntN(3) == 0 { // a concurrent retry, whose result counts as well
		wg.Go(func() { p.send(topic, part, msgs, b) })
	}
	p.send(topic, part, msgs, b)
	wg.Wait()
}

func (p *producer) send(topic engine.TopicID, part int32, msgs []engine.Message, b *batch) {
	out, err := p.h.e.Append(p.h.ctx, topic, part, msgs)
	if !p.h.alive() {
		return
	}
	if err != nil {
		p.h.Errorf("append: got error %v, want none", err)
		return
	}
	for i := range out {
		p.h.noteResult(b.msgs[i], out[i].ID)
	}
}

// check sends every message again: a message in the store is its own duplicate.
func (p *producer) check() {
	p.h.Helper()
	for _, s := range p.mine {
		out, err := p.h.e.Append(p.h.ctx, logTopic, s.part, []engine.Message{s.msg})
		if err != nil {
			p.h.Fatalf("second append: got error %v, want none", err)
		}
		if out[0].Duplicate != s.stored || s.stored && out[0].ID != s.id {
			p.h.Fatalf("second append: got %+v, want duplicate %v of %v", out[0], s.stored, s.id)
		}
		// The messages of a lost append are now appended individually.
		s.decided, s.stored, s.id, s.batch = true, true, out[0].ID, &batch{}
	}
	p.mine = nil
}

// consumer receives and settles messages. It is the only consumer of its subscription.
type consumer struct {
	h     *history
	topic engine.TopicID
	name  string
	held  []engine.Delivery
	acked map[engine.MessageID]bool
	open  map[engine.MessageID]bool // acknowledgements whose call did not return
	reset bool                      // a reset to the start whose call did not return
}

func newConsumer(h *history, topic engine.TopicID, name string) *consumer {
	return &consumer{
		h: h, topic: topic, name: name, acked: map[engine.MessageID]bool{},
		open: map[engine.MessageID]bool{},
	}
}

func (c *consumer) step(rng *rand.Rand) {
	switch n := rng.IntN(10); {
	case n < 4:
		c.receive(1 + rng.IntN(5))
	case n < 8 && len(c.held) > 0:
		c.settle(rng)
	case n == 8 && c.topic == logTopic:
		c.rewind()
	case n == 9 && len(c.held) > 0:
		c.settleLate(rng)
	default:
		records, err := c.h.e.Read(c.h.ctx, c.topic,
			engine.ReadRequest{Partition: engine.AllPartitions, Max: 100, Subscription: c.name})
		if err != nil && c.h.alive() {
			c.h.Errorf("read: got error %v, want none", err)
		}
		for _, r := range records {
			c.h.noteObserved(r)
		}
	}
}

func (c *consumer) receive(most int) {
	got, err := c.h.e.Receive(c.h.ctx, c.topic, c.name,
		engine.ReceiveRequest{Max: most, Partition: engine.AllPartitions})
	if err != nil && c.h.alive() {
		c.h.Errorf("receive: got error %v, want none", err)
	}
	for _, d := range got {
		c.h.noteObserved(d.Record)
		if c.acked[d.ID] {
			c.h.Errorf("receive: got %v, want it never again: it was acknowledged", d.ID)
		}
		c.held = append(c.held, d)
	}
}

func (c *consumer) settle(rng *rand.Rand) {
	rng.Shuffle(len(c.held), func(i, j int) { c.held[i], c.held[j] = c.held[j], c.held[i] })
	n := 1 + rng.IntN(len(c.held))
	var s []engine.Settlement
	for _, d := range c.held[:n] {
		id, action := d.ID, engine.Ack
		if rng.IntN(4) == 0 {
			action = engine.Nack
		}
		if action == engine.Ack {
			c.open[id] = true
		}
		// Half of them contain the delivery number.
		s = append(s, engine.Settlement{ID: id, Action: action, Delivery: (d.Redeliveries + 1) * uint32(rng.IntN(2))})
	}
	c.held = c.held[n:]
	err := c.h.e.Settle(c.h.ctx, c.topic, c.name, s)
	if !c.h.alive() {
		return
	}
	if err != nil {
		c.h.Errorf("settle: got error %v, want none", err)
		return
	}
	for id := range c.open {
		c.acked[id] = true
	}
	clear(c.open)
}

// settleLate settles a message in the name of an earlier consumer, whose lease has ended. The
// engine must reject the settlement.
func (c *consumer) settleLate(rng *rand.Rand) {
	d := c.held[rng.IntN(len(c.held))]
	for _, action := range []engine.Action{engine.Nack, engine.Extend} {
		late := engine.Settlement{ID: d.ID, Action: action, Delivery: d.Redeliveries + 2}
		if d.Redeliveries > 0 {
			late.Delivery = d.Redeliveries
		}
		if err := c.h.e.Settle(c.h.ctx, c.topic, c.name, []engine.Settlement{late}); !errors.Is(err,
			engine.ErrLeaseEnded) && c.h.alive() {
			c.h.Errorf("settle with a lease that has ended: got error %v, want %v", err, engine.ErrLeaseEnded)
		}
	}
}

func (c *consumer) rewind() {
	c.reset = true
	err := c.h.e.ResetSubscription(c.h.ctx, c.topic, c.name, engine.Position{Kind: engine.Earliest})
	if !c.h.alive() {
		return
	}
	if err != nil {
		c.h.Errorf("reset: got error %v, want none", err)
		return
	}
	c.reset = false
	c.held = nil
	clear(c.acked)
}

// check drains the subscription: it must deliver every message that was not acknowledged.
func (c *consumer) check() {
	c.h.Helper()
	stats, err := c.h.e.DescribeTopic(c.h.ctx, c.topic)
	if err != nil {
		c.h.Fatalf("describe: got error %v, want none", err)
	}
	backlog := stats.Subscriptions[0].Backlog
	delivered := map[engine.MessageID]bool{}
	var all []engine.Delivery
	for {
		got, err := c.h.e.Receive(c.h.ctx, c.topic, c.name,
			engine.ReceiveRequest{Max: 1000, Partition: engine.AllPartitions})
		if err != nil {
			c.h.Fatalf("receive: got error %v, want none", err)
		}
		if len(got) == 0 {
			break
		}
		for _, d := range got {
			if delivered[d.ID] {
				c.h.Fatalf("receive: got %v twice, want it once", d.ID)
			}
			delivered[d.ID] = true
		}
		all = append(all, got...)
	}
	var existing uint64
	for _, s := range c.h.sent[c.topic] {
		if s.stored {
			existing++
			c.checkOne(s.id, delivered)
		}
	}
	if uint64(len(delivered)) != backlog {
		c.h.Fatalf("receive: got %d of %d messages, want the backlog of %d", len(delivered), existing, backlog)
	}
	c.held, c.reset = nil, false
	c.held = all
	clear(c.open)
}

func (c *consumer) checkOne(id engine.MessageID, delivered map[engine.MessageID]bool) {
	c.h.Helper()
	switch {
	case c.acked[id] && delivered[id] && !c.reset:
		c.h.Fatalf("receive: got %v, want it never again: it was acknowledged", id)
	case !c.acked[id] && !c.open[id] && !delivered[id]:
		c.h.Fatalf("receive: got no %v, want it: it was not acknowledged", id)
	case delivered[id]:
		delete(c.acked, id)
	default:
		c.acked[id] = true
	}
}

// tailReader reads the log as it grows: every message that it reads must survive.
type tailReader struct {
	h    *history
	next []uint64
}

func newTailReader(h *history) *tailReader { return &tailReader{h: h, next: make([]uint64, 2)} }

func (w *tailReader) step(*rand.Rand) {
	records, err := w.h.e.Read(w.h.ctx, logTopic, engine.ReadRequest{
		Partition: engine.AllPartitions, FromEach: w.next, Max: 100, Wait: 2 * time.Millisecond,
	})
	if err != nil && w.h.alive() {
		w.h.Errorf("read: got error %v, want none", err)
	}
	for _, r := range records {
		w.h.noteObserved(r)
		w.next[r.ID.Partition] = r.ID.Entry + 1
	}
}

func (w *tailReader) check() { w.next = make([]uint64, 2) }

// deadLetterConsumer rejects every message: each message must be either in its topic or in the
// dead letter topic.
type deadLetterConsumer struct{ h *history }

func newDeadLetterConsumer(h *history) *deadLetterConsumer { return &deadLetterConsumer{h} }

func (p *deadLetterConsumer) step(rng *rand.Rand) {
	got, err := p.h.e.Receive(p.h.ctx, rejectTopic, "p", engine.ReceiveRequest{Max: 1 + rng.IntN(3), Partition: 0})
	if err != nil && p.h.alive() {
		p.h.Errorf("receive: got error %v, want none", err)
	}
	for _, d := range got {
		p.h.noteObserved(d.Record)
		err := p.h.e.Settle(p.h.ctx, rejectTopic, "p", []engine.Settlement{{ID: d.ID, Action: engine.Nack}})
		if err != nil && p.h.alive() {
			p.h.Errorf("negative acknowledgement: got error %v, want none", err)
		}
	}
}

func (p *deadLetterConsumer) check() {
	p.h.Helper()
	count := map[string]int{}
	for topic, sub := range map[engine.TopicID]string{rejectTopic: "p", deadLetterTopic: ""} {
		records, err := p.h.e.Read(p.h.ctx, topic, engine.ReadRequest{Partition: 0, Max: 10000, Subscription: sub})
		if err != nil {
			p.h.Fatalf("read topic %d: got error %v, want none", topic, err)
		}
		for _, r := range records {
			count[string(r.Payload)]++
		}
	}
	existing := 0
	for payload, s := range p.h.sent[rejectTopic] {
		if s.stored {
			existing++
			if n := count[payload]; n != 1 {
				p.h.Fatalf("message %q: got it in %d topics, want it in one", payload, n)
			}
		}
	}
	if len(count) != existing {
		p.h.Fatalf("got %d messages in both topics, want the %d that were sent", len(count), existing)
	}
}
