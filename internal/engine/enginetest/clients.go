package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"freshet/internal/engine"
)

// producer appends to the log and the queue, with a sequence where the topic
// deduplicates.
type producer struct {
	h    *history
	name string
	next uint64
	mine []*sequencedSending
}

type sequencedSending struct {
	*sending
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
		msgs = append(msgs, engine.Message{Payload: []byte(payload), Dedup: engine.DedupKey{Producer: p.name, Sequence: p.next}})
		p.next++
	}
	b := p.h.sending(topic, names...)
	if topic == logTopic {
		for i := range msgs {
			p.mine = append(p.mine, &sequencedSending{b.msgs[i], part, msgs[i]})
		}
	}
	var wg sync.WaitGroup
	if topic == logTopic && rng.IntN(3) == 0 { // an impatient retry: its answer counts as much
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
		p.h.Errorf("append: %v", err)
		return
	}
	for i := range out {
		p.h.arrived(b.msgs[i], out[i].ID)
	}
}

// check sends everything again: what is there is a duplicate of itself.
func (p *producer) check() {
	p.h.Helper()
	for _, s := range p.mine {
		out, err := p.h.e.Append(p.h.ctx, logTopic, s.part, []engine.Message{s.msg})
		if err != nil {
			p.h.Fatalf("append again: %v", err)
		}
		if out[0].Duplicate != s.there || s.there && out[0].ID != s.id {
			p.h.Fatalf("sent again: %+v, but there is %v at %v", out[0], s.there, s.id)
		}
		// A lost batch comes back message by message.
		s.known, s.there, s.id, s.batch = true, true, out[0].ID, &batch{}
	}
	p.mine = nil
}

// consumer receives and settles, alone on its subscription.
type consumer struct {
	h     *history
	topic engine.TopicID
	name  string
	held  []engine.MessageID
	acked map[engine.MessageID]bool
	open  map[engine.MessageID]bool // acknowledged without an answer
	reset bool                      // a reset to the start without an answer
}

func newConsumer(h *history, topic engine.TopicID, name string) *consumer {
	return &consumer{h: h, topic: topic, name: name, acked: map[engine.MessageID]bool{}, open: map[engine.MessageID]bool{}}
}

func (c *consumer) step(rng *rand.Rand) {
	switch n := rng.IntN(10); {
	case n < 4:
		c.receive(1 + rng.IntN(5))
	case n < 8 && len(c.held) > 0:
		c.settle(rng)
	case n == 8 && c.topic == logTopic:
		c.rewind()
	default:
		records, err := c.h.e.Read(c.h.ctx, c.topic, engine.ReadRequest{Partition: engine.AllPartitions, Max: 100, Subscription: c.name})
		if err != nil && c.h.alive() {
			c.h.Errorf("read: %v", err)
		}
		for _, r := range records {
			c.h.saw(r)
		}
	}
}

func (c *consumer) receive(most int) {
	got, err := c.h.e.Receive(c.h.ctx, c.topic, c.name, engine.ReceiveRequest{Max: most, Partition: engine.AllPartitions})
	if err != nil && c.h.alive() {
		c.h.Errorf("receive: %v", err)
	}
	for _, d := range got {
		c.h.saw(d.Record)
		if c.acked[d.ID] {
			c.h.Errorf("%v came again after it was acknowledged", d.ID)
		}
		c.held = append(c.held, d.ID)
	}
}

func (c *consumer) settle(rng *rand.Rand) {
	rng.Shuffle(len(c.held), func(i, j int) { c.held[i], c.held[j] = c.held[j], c.held[i] })
	n := 1 + rng.IntN(len(c.held))
	var s []engine.Settlement
	for _, id := range c.held[:n] {
		action := engine.Ack
		if rng.IntN(4) == 0 {
			action = engine.Nack
		}
		if action == engine.Ack {
			c.open[id] = true
		}
		s = append(s, engine.Settlement{ID: id, Action: action})
	}
	c.held = c.held[n:]
	err := c.h.e.Settle(c.h.ctx, c.topic, c.name, s)
	if !c.h.alive() {
		return
	}
	if err != nil {
		c.h.Errorf("settle: %v", err)
		return
	}
	for id := range c.open {
		c.acked[id] = true
	}
	clear(c.open)
}

func (c *consumer) rewind() {
	c.reset = true
	err := c.h.e.ResetSubscription(c.h.ctx, c.topic, c.name, engine.Position{Kind: engine.Earliest})
	if !c.h.alive() {
		return
	}
	if err != nil {
		c.h.Errorf("reset: %v", err)
		return
	}
	c.reset = false
	c.held = nil
	clear(c.acked)
}

// check drains the subscription: everything comes but what was acknowledged.
func (c *consumer) check() {
	c.h.Helper()
	stats, err := c.h.e.DescribeTopic(c.h.ctx, c.topic)
	if err != nil {
		c.h.Fatalf("describe: %v", err)
	}
	backlog := stats.Subscriptions[0].Backlog
	came := map[engine.MessageID]bool{}
	for {
		got, err := c.h.e.Receive(c.h.ctx, c.topic, c.name, engine.ReceiveRequest{Max: 1000, Partition: engine.AllPartitions})
		if err != nil {
			c.h.Fatalf("receive: %v", err)
		}
		if len(got) == 0 {
			break
		}
		for _, d := range got {
			if came[d.ID] {
				c.h.Fatalf("%v came twice", d.ID)
			}
			came[d.ID] = true
		}
	}
	var there uint64
	for _, s := range c.h.sent[c.topic] {
		if s.there {
			there++
			c.checkOne(s.id, came)
		}
	}
	if uint64(len(came)) != backlog {
		c.h.Fatalf("%d of %d messages came, the backlog was %d", len(came), there, backlog)
	}
	c.held, c.reset = nil, false
	for id := range came {
		c.held = append(c.held, id)
	}
	clear(c.open)
}

func (c *consumer) checkOne(id engine.MessageID, came map[engine.MessageID]bool) {
	c.h.Helper()
	switch {
	case c.acked[id] && came[id] && !c.reset:
		c.h.Fatalf("%v came again after it was acknowledged", id)
	case !c.acked[id] && !c.open[id] && !came[id]:
		c.h.Fatalf("%v was not acknowledged and did not come", id)
	case came[id]:
		delete(c.acked, id)
	default:
		c.acked[id] = true
	}
}

// watcher reads the log as it grows: whatever it is shown must last.
type watcher struct {
	h    *history
	next []uint64
}

func newWatcher(h *history) *watcher { return &watcher{h: h, next: make([]uint64, 2)} }

func (w *watcher) step(*rand.Rand) {
	records, err := w.h.e.Read(w.h.ctx, logTopic, engine.ReadRequest{
		Partition: engine.AllPartitions, FromEach: w.next, Max: 100, Wait: 2 * time.Millisecond,
	})
	if err != nil && w.h.alive() {
		w.h.Errorf("read: %v", err)
	}
	for _, r := range records {
		w.h.saw(r)
		w.next[r.ID.Partition] = r.ID.Entry + 1
	}
}

func (w *watcher) check() { w.next = make([]uint64, 2) }

// poisoner sends messages to their death: each is in one of two places, never
// in both and never in none.
type poisoner struct{ h *history }

func newPoisoner(h *history) *poisoner { return &poisoner{h} }

func (p *poisoner) step(rng *rand.Rand) {
	got, err := p.h.e.Receive(p.h.ctx, poisonBox, "p", engine.ReceiveRequest{Max: 1 + rng.IntN(3), Partition: 0})
	if err != nil && p.h.alive() {
		p.h.Errorf("receive: %v", err)
	}
	for _, d := range got {
		p.h.saw(d.Record)
		err := p.h.e.Settle(p.h.ctx, poisonBox, "p", []engine.Settlement{{ID: d.ID, Action: engine.Nack}})
		if err != nil && p.h.alive() {
			p.h.Errorf("nack: %v", err)
		}
	}
}

func (p *poisoner) check() {
	p.h.Helper()
	place := map[string]int{}
	for topic, sub := range map[engine.TopicID]string{poisonBox: "p", deadBox: ""} {
		records, err := p.h.e.Read(p.h.ctx, topic, engine.ReadRequest{Partition: 0, Max: 10000, Subscription: sub})
		if err != nil {
			p.h.Fatalf("read topic %d: %v", topic, err)
		}
		for _, r := range records {
			place[string(r.Payload)]++
		}
	}
	there := 0
	for payload, s := range p.h.sent[poisonBox] {
		if s.there {
			there++
			if n := place[payload]; n != 1 {
				p.h.Fatalf("%q is in %d places", payload, n)
			}
		}
	}
	if len(place) != there {
		p.h.Fatalf("%d messages in two places, %d were sent", len(place), there)
	}
}
