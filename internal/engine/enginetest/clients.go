package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

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
	topic, part := logTopic, int32(rng.IntN(2))
	switch rng.IntN(4) {
	case 0:
		topic, part = queueTopic, 0
	case 1:
		topic, part = poisonBox, 0
	}
	var msgs []engine.Message
	var names []string
	for range 1 + rng.IntN(3) {
		payload := fmt.Sprintf("%s/%d/%s", p.name, p.next, strings.Repeat("x", rng.IntN(600)))
		names = append(names, payload)
		msgs = append(msgs, engine.Message{Payload: []byte(payload), Producer: p.name, Sequence: p.next, HasSequence: true})
		p.next++
	}
	b := p.h.sending(topic, names...)
	if topic == logTopic {
		for i := range msgs {
			p.mine = append(p.mine, &sequencedSending{b.msgs[i], part, msgs[i]})
		}
	}
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

// scribe writes to a journal that another scribe writes to as well.
type scribe struct {
	h     *history
	name  string
	count int
	known map[uint64]string // by position: answered or read before the cut
	open  []string          // appended without an answer
}

func newScribe(h *history, n int) *scribe {
	return &scribe{h: h, name: fmt.Sprintf("scribe-%d", n), known: map[uint64]string{}}
}

func (s *scribe) step(rng *rand.Rand) {
	j, err := s.h.e.Journal(s.h.ctx, "journal")
	if err != nil {
		if s.h.alive() {
			s.h.Errorf("journal: %v", err)
		}
		return
	}
	state, last := s.replay(j)
	if !s.h.alive() {
		return
	}
	for i, r := range state {
		s.known[uint64(i+1)] = r
	}
	if rng.IntN(6) == 0 {
		err := j.SaveSnapshot(s.h.ctx, last, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(state, "\n"))
			return err
		})
		if err != nil && s.h.alive() {
			s.h.Errorf("snapshot: %v", err)
		}
		return
	}
	var records [][]byte
	s.open = nil
	for range 1 + rng.IntN(3) {
		r := fmt.Sprintf("%s/%d", s.name, s.count)
		s.count++
		s.open = append(s.open, r)
		records = append(records, []byte(r))
	}
	end, err := j.Append(s.h.ctx, last, records...)
	if !s.h.alive() {
		return
	}
	switch {
	case err == nil:
		for i, r := range s.open {
			s.known[end-uint64(len(s.open)-1-i)] = r
		}
	case !errors.Is(err, engine.ErrConflict):
		s.h.Errorf("journal append: %v", err)
	}
	s.open = nil
}

// replay reads the journal from its snapshot on, whoever saves one meanwhile.
func (s *scribe) replay(j engine.Journal) (state []string, last uint64) {
	s.h.Helper()
	for {
		position, r, err := j.LoadSnapshot(s.h.ctx)
		if err != nil {
			s.h.Errorf("load snapshot: %v", err)
			return nil, 0
		}
		state = nil
		if r != nil {
			text, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil {
				s.h.Errorf("read snapshot: %v", err)
			}
			for line := range bytes.Lines(text) {
				state = append(state, strings.TrimSuffix(string(line), "\n"))
			}
		}
		last, err = j.Replay(s.h.ctx, position, func(_ uint64, record []byte) error {
			state = append(state, string(record))
			return nil
		})
		if errors.Is(err, engine.ErrCompacted) {
			continue
		}
		if err != nil || last != uint64(len(state)) {
			s.h.Errorf("replay to %d with %d records: %v", last, len(state), err)
		}
		return state, last
	}
}

func (s *scribe) check() {
	s.h.Helper()
	j, err := s.h.e.Journal(s.h.ctx, "journal")
	if err != nil {
		s.h.Fatalf("journal: %v", err)
	}
	state, _ := s.replay(j)
	at := map[string]int{}
	for i, r := range state {
		if _, twice := at[r]; twice {
			s.h.Fatalf("record %q stands twice", r)
		}
		at[r] = i + 1
	}
	for position, r := range s.known {
		if position > uint64(len(state)) || state[position-1] != r {
			s.h.Fatalf("record %d was %q, and the journal is %q", position, r, state)
		}
	}
	for i, r := range s.open {
		if (at[r] != 0) != (at[s.open[0]] != 0) || at[r] != 0 && at[r] != at[s.open[0]]+i {
			s.h.Fatalf("of one append %q only a part is there: %q", s.open, state)
		}
	}
	s.open = nil
}

// admin creates and deletes topics of its own.
type admin struct {
	h    *history
	next engine.TopicID
	is   map[engine.TopicID]bool // answered
	open engine.TopicID          // changed without an answer
}

func newAdmin(h *history) *admin {
	return &admin{h: h, next: freeTopics, is: map[engine.TopicID]bool{}}
}

func (a *admin) step(rng *rand.Rand) {
	id, create := a.next, true
	for old, there := range a.is {
		if there && rng.IntN(2) == 0 {
			id, create = old, false
		}
	}
	a.open = id
	var err error
	if create {
		a.next++
		err = a.h.e.CreateTopic(a.h.ctx, id, engine.TopicConfig{Partitions: 1})
	} else {
		err = a.h.e.DeleteTopic(a.h.ctx, id)
	}
	if !a.h.alive() {
		return
	}
	if err != nil {
		a.h.Errorf("topic %d: %v", id, err)
	}
	a.is[id], a.open = create, 0
}

func (a *admin) check() {
	a.h.Helper()
	ids, err := a.h.e.ListTopics(a.h.ctx, freeTopics-1, 10000)
	if err != nil {
		a.h.Fatalf("list: %v", err)
	}
	there := map[engine.TopicID]bool{}
	for _, id := range ids {
		there[id] = true
	}
	for id, want := range a.is {
		if id != a.open && there[id] != want {
			a.h.Fatalf("topic %d is there: %v, want %v", id, there[id], want)
		}
	}
	for id := range there {
		if _, known := a.is[id]; !known && id != a.open {
			a.h.Fatalf("topic %d was never made", id)
		}
	}
	if a.open != 0 {
		a.is[a.open], a.open = there[a.open], 0
	}
}
