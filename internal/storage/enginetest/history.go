package enginetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"freshet/internal/storage/engine"
)

// PowerStore is a Store that can simulate a power failure at any step.
type PowerStore interface {
	Store
	// CutAfter schedules a power failure after a number of steps, which the store defines (for
	// example writes and syncs). The channel is closed at that moment, just before data can be
	// lost; Crash completes the failure.
	CutAfter(steps int) <-chan struct{}
}

// The topics of a history.
const (
	logTopic        engine.TopicID = 1 // two partitions, deduplicating, unlimited retention
	queueTopic      engine.TopicID = 2 // no retention: trimmed when its consumer has acknowledged
	rejectTopic     engine.TopicID = 3 // never acknowledged: every message becomes a dead letter
	deadLetterTopic engine.TopicID = 4 // dead letters of rejectTopic
	freeTopics      engine.TopicID = 100
)

// History runs random calls of clients against a store, simulates a power failure at a random
// step, opens the store again, and compares its content with the results that the clients got
// and the messages that they read. It repeats this with the same store, cuts times in all.
//
// Each call of a client is in one of three states: it returned before the power failure, so
// its effect must be in the store; it did not return, so its effect may be in the store,
// completely or not at all; or it was never made.
func History(t testing.TB, rng *rand.Rand, store PowerStore, cuts int) {
	t.Helper()
	h := &history{TB: t, rng: rng, ctx: context.Background()}
	all := []client{
		newProducer(h, 0), newProducer(h, 1),
		newConsumer(h, logTopic, "s"), newConsumer(h, queueTopic, "q"),
		newDeadLetterConsumer(h), newJournalWriter(h, 0), newJournalWriter(h, 1), newTopicAdmin(h), newTailReader(h),
		newBatchProducer(h),
	}
	// Each history has a random subset of the clients, so that other races occur.
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	h.clients = all[:2+rng.IntN(4)]
	for round := range cuts {
		h.open(store, round == 0)
		h.run(store)
		store.Crash(t)
	}
	h.open(store, false)
	if err := h.e.Close(); err != nil {
		t.Fatalf("close: got error %v, want none", err)
	}
}

// client is one sequential user of the engine.
type client interface {
	// step makes one call.
	step(rng *rand.Rand)
	// check compares the store after a power failure with the client's results, and records
	// which of the calls that did not return took effect.
	check()
}

type history struct {
	testing.TB
	rng     *rand.Rand
	ctx     context.Context
	e       engine.Engine
	cut     <-chan struct{}
	clients []client

	mu       sync.Mutex
	sent     map[engine.TopicID]map[string]*sentMessage // by payload
	observed map[engine.MessageID]string                // read or received before the last power failure
}

// sentMessage is the state of one message.
type sentMessage struct {
	payload string
	batch   *batch
	decided bool // whether the store has it is decided: there does not change any more
	stored  bool // the store has it
	id      engine.MessageID
}

type batch struct{ msgs []*sentMessage }

// alive reports whether the power has not failed yet. A call that returned before alive
// returned true has returned before the power failure.
func (h *history) alive() bool {
	select {
	case <-h.cut:
		return false
	default:
		return true
	}
}

func (h *history) open(store PowerStore, fresh bool) {
	h.Helper()
	h.cut = nil
	h.e = store.Open(h.TB)
	if fresh {
		h.setUp()
		return
	}
	h.checkLog()
	for _, c := range h.clients {
		c.check()
	}
}

func (h *history) setUp() {
	h.Helper()
	h.observed = map[engine.MessageID]string{}
	h.sent = map[engine.TopicID]map[string]*sentMessage{}
	one := engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}
	long := engine.SubscriptionConfig{Lease: time.Hour}
	for _, topic := range h.topics() {
		h.sent[topic] = map[string]*sentMessage{}
		switch topic {
		case logTopic:
			kept := engine.TopicConfig{Partitions: 2, RetainAge: -1, RetainBytes: -1, Deduplicate: true}
			h.create(topic, kept, "s", long)
		case queueTopic:
			h.create(topic, engine.TopicConfig{Partitions: 1}, "q", long)
		case rejectTopic:
			h.create(deadLetterTopic, one, "", long)
			h.create(topic, one, "p", engine.SubscriptionConfig{
				MaxDeliveries: 1, DeadLetterTopic: deadLetterTopic,
				Lease: time.Hour,
			})
		}
	}
}

// topics returns the topics that the clients of this history use.
func (h *history) topics() []engine.TopicID {
	topics := []engine.TopicID{logTopic}
	for _, c := range h.clients {
		switch c := c.(type) {
		case *consumer:
			if c.topic == queueTopic {
				topics = append(topics, queueTopic)
			}
		case *deadLetterConsumer:
			topics = append(topics, rejectTopic)
		}
	}
	return topics
}

func (h *history) create(topic engine.TopicID, config engine.TopicConfig, sub string,
	subConfig engine.SubscriptionConfig,
) {
	h.Helper()
	err := h.e.CreateTopic(h.ctx, topic, config)
	if err == nil && sub != "" {
		err = h.e.CreateSubscription(h.ctx, topic, sub, subConfig, engine.Position{Kind: engine.Earliest})
	}
	if err != nil {
		h.Fatalf("set up topic %d: got error %v, want none", topic, err)
	}
}

// run lets every client make a few calls while the power may fail.
func (h *history) run(store PowerStore) {
	h.Helper()
	h.cut = store.CutAfter(1 + h.rng.IntN(120))
	var wg sync.WaitGroup
	for _, c := range h.clients {
		rng := rand.New(rand.NewPCG(h.rng.Uint64(), 0))
		calls := h.rng.IntN(12)
		wg.Go(func() {
			for range calls {
				if !h.alive() {
					return
				}
				c.step(rng)
			}
		})
	}
	wg.Wait()
}

// noteSent records messages before they are sent.
func (h *history) noteSent(id engine.TopicID, payloads ...string) *batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := new(batch)
	for _, p := range payloads {
		s := &sentMessage{payload: p, batch: b}
		h.sent[id][p] = s
		b.msgs = append(b.msgs, s)
	}
	return b
}

// noteResult records the result of an append that returned before the power failure.
func (h *history) noteResult(s *sentMessage, id engine.MessageID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.stored && s.id != id {
		h.Errorf("append %q: got the ids %v and %v, want one id", s.payload, s.id, id)
	}
	s.decided, s.stored, s.id = true, true, id
}

// noteObserved records a message that a client read before the power failure.
func (h *history) noteObserved(r engine.Record) {
	if !h.alive() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observed[r.ID] = string(r.Payload)
}

// checkLog reads every topic completely and compares it with the sent messages.
func (h *history) checkLog() {
	h.Helper()
	for topic := range h.sent {
		if len(h.sent[topic]) == 0 {
			continue
		}
		stats, err := h.e.DescribeTopic(h.ctx, topic)
		if err != nil {
			h.Fatalf("describe topic %d: got error %v, want none", topic, err)
		}
		for part, p := range stats.Partitions {
			records, err := h.e.Read(h.ctx, topic, engine.ReadRequest{Partition: int32(part), Max: 10000})
			if err != nil {
				h.Fatalf("read topic %d: got error %v, want none", topic, err)
			}
			// Trimming continues in the background, so messages at the start may be gone.
			got := uint64(len(records))
			if first := p.Next - got; got > p.Next-p.First || got > 0 && records[0].ID.Entry != first || got == 0 &&
				topic != queueTopic && p.Next > 0 {
				h.Fatalf("topic %d partition %d: got %d messages, want those between %d and %d", topic, part, got,
					p.First, p.Next)
			}
			p.First = p.Next - got
			stats.Partitions[part].First = p.First
			h.checkRecords(topic, records, p)
		}
		h.markTrimmed(topic, stats)
		h.resolve(topic, stats)
	}
	for id, payload := range h.observed {
		if s := h.sent[id.Topic][payload]; s == nil || !s.stored || s.id != id {
			h.Fatalf("%v: got another message or none, want %s, which was read before the power failure", id, payload)
		}
	}
}

func (h *history) checkRecords(topic engine.TopicID, records []engine.Record, p engine.PartitionStats) {
	h.Helper()
	var last int64
	for i, r := range records {
		if r.ID.Entry != p.First+uint64(i) || r.PublishTime < last {
			h.Fatalf("record %d: got %v, published at %d; want entry %d, published at %d or later", i, r.ID,
				r.PublishTime, p.First+uint64(i), last)
		}
		last = r.PublishTime
		s := h.sent[topic][string(r.Payload)]
		switch {
		case s == nil:
			h.Fatalf("%v: got %q, want a message that was sent", r.ID, r.Payload)
		case s.decided && !s.stored:
			h.Fatalf("%v: got %q, want none: it was lost in an earlier power failure", r.ID, r.Payload)
		case s.stored && s.id != r.ID:
			h.Fatalf("%q: got it at %v, want it at %v", r.Payload, r.ID, s.id)
		}
		s.decided, s.stored, s.id = true, true, r.ID
	}
}

// markTrimmed marks messages as stored that were read before the power failure and are trimmed now.
func (h *history) markTrimmed(topic engine.TopicID, stats engine.TopicStats) {
	for id, payload := range h.observed {
		if id.Topic == topic && id.Entry < stats.Partitions[id.Partition].First {
			if s := h.sent[topic][payload]; s != nil && !s.decided {
				s.decided, s.stored, s.id = true, true, id
			}
		}
	}
}

// resolve decides which appends that did not return took effect. It checks that the messages of
// appends that returned exist, and that appends are complete. A trimmed message counts as
// existing.
func (h *history) resolve(topic engine.TopicID, stats engine.TopicStats) {
	h.Helper()
	for payload, s := range h.sent[topic] {
		if s.stored {
			p := stats.Partitions[s.id.Partition]
			if s.id.Entry >= p.Next {
				h.Fatalf("%q: got a partition that ends at %d, want %v in it: the append returned", payload, p.Next,
					s.id)
			}
			for _, other := range s.batch.msgs {
				if !other.stored {
					h.Fatalf("got %q without %q, want all of an append or none", payload, other.payload)
				}
			}
		}
	}
	for _, s := range h.sent[topic] {
		s.decided = true
	}
}
