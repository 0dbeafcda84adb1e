package messaging

import (
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// liveTopics holds the in-memory state of the topics that were used since the broker opened.
type liveTopics struct {
	byID            sync.Map // engine.TopicID → *liveTopic
	namespaceMeters namespaceMeters
	state           *statemachine.Machine[*catalogueState]
	limits          *Limits
	sweeping        sync.Once // starts sweepLoop
}

// liveTopic is the in-memory state of a topic since the broker opened: the round-robin counter,
// meters, producers and open push consumers. It is not durable.
type liveTopic struct {
	roundRobin atomic.Uint32 // round-robin counter for messages without a key
	rules      atomic.Pointer[rulesAt]
	in         meter
	out        meter
	acks       meter
	dead       meter // messages moved to a dead letter topic
	failed     meter // messages of producers that were rejected or not stored
	passedOver meter // messages that the filters of subscriptions passed over
	// scanned is in, out and failed together at the last call of Statistics.Scan.
	scanned atomic.Int64
	// producers are the idempotent Kafka producers, by partition.
	producers sync.Map // int32 → *producerTable
	// disowned is set when another member owns the topic now, or the topic was deleted. The producer
	// tables must not be used any more.
	disowned atomic.Bool
	subs     sync.Map // subscription name → *liveSubscription, for subscriptions used since Open
}

// rulesAt is the cached rules of a topic. It identifies the catalogue by its position instead of
// referencing it, because idle topics would keep old catalogues in memory.
type rulesAt struct {
	position uint64
	rules
}

// rules returns the effective rules of a topic, computed once per state of the catalogue.
func (l *liveTopics) rules(t *topic, live *liveTopic) *rules {
	// Read the position first: the rules may be newer than the position, but never older.
	position := l.state.Position()
	at := live.rules.Load()
	if at == nil || at.position != position {
		at = &rulesAt{position: position, rules: l.state.View().rules(t, l.limits)}
		live.rules.Store(at)
	}
	return &at.rules
}

// nextPartition returns the next partition in turn.
func (l *liveTopic) nextPartition(partitions int32) int32 {
	return int32(l.roundRobin.Add(1) % uint32(partitions))
}

type liveSubscription struct {
	out  meter
	acks meter
	// scanned is out and acks together at the last call of Statistics.ScanSubscriptions.
	scanned atomic.Int64

	openConsumers atomic.Int32 // len(consumers), readable without mu
	mu            sync.Mutex
	consumers     map[*PushConsumer]struct{}
}

// of returns the in-memory state of a topic.
func (l *liveTopics) of(id engine.TopicID) *liveTopic {
	if live, ok := l.byID.Load(id); ok {
		return live.(*liveTopic)
	}
	live, _ := l.byID.LoadOrStore(id, l.create(id))
	return live.(*liveTopic)
}

// create returns the in-memory state of a topic. Its meters also count for the namespace.
func (l *liveTopics) create(id engine.TopicID) *liveTopic {
	live := &liveTopic{}
	if t, ok := l.state.View().byID.Get(id); ok {
		space := l.namespaceMeters.meterOf(t.name.Namespace)
		live.in.parent, live.out.parent = &space.in, &space.out
		live.acks.parent, live.dead.parent, live.failed.parent = &space.acks, &space.dead, &space.failed
		live.passedOver.parent = &space.passedOver
	}
	return live
}

// drop removes the in-memory state of a topic and ends its push consumers with an error.
func (l *liveTopics) drop(id engine.TopicID, why error) {
	found, ok := l.byID.LoadAndDelete(id)
	if !ok {
		return
	}
	live := found.(*liveTopic)
	live.disowned.Store(true)
	live.producers.Range(func(_, table any) bool {
		table.(*producerTable).release()
		return true
	})
	live.subs.Range(func(name, _ any) bool {
		live.endSubscription(name.(string), why)
		return true
	})
}

// sweepProducers starts to remove expired producers in the background, unless that runs already.
func (l *liveTopics) sweepProducers(life *lifecycle) {
	l.sweeping.Do(func() {
		life.work.Go(func() {
			for range retry.Every(life.ctx, producerSweep) {
				l.expireProducers(now())
			}
		})
	})
}

// expireProducers removes producers without a batch for producerRetention from memory.
func (l *liveTopics) expireProducers(at int64) {
	l.byID.Range(func(_, live any) bool {
		live.(*liveTopic).producers.Range(func(_, found any) bool {
			table := found.(*producerTable)
			table.mu.Lock()
			defer table.mu.Unlock()
			table.expireLocked(at)
			return true
		})
		return true
	})
}

// subscription returns the in-memory state of a subscription. Callers make sure first that the
// subscription exists in the engine, so that requests with invented names use no memory.
func (l *liveTopic) subscription(name string) *liveSubscription {
	if s, ok := l.subs.Load(name); ok {
		return s.(*liveSubscription)
	}
	s, _ := l.subs.LoadOrStore(name, &liveSubscription{acks: meter{parent: &l.acks}})
	return s.(*liveSubscription)
}

// endConsumers sends an error to the push consumers of a deleted subscription, which may be waiting for
// credits instead of the engine.
func (s *liveSubscription) endConsumers(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.consumers {
		select {
		case stream.ended <- why:
		default:
		}
	}
}

// endSubscription removes the state of a deleted subscription and ends its push consumers.
func (l *liveTopic) endSubscription(name string, why error) {
	if s, ok := l.subs.LoadAndDelete(name); ok {
		s.(*liveSubscription).endConsumers(why)
	}
}

// meter counts messages and bytes and computes their rates.
type meter struct {
	messages atomic.Int64
	bytes    atomic.Int64
	parent   *meter // parent meter that includes these counts; may be nil

	mu              sync.Mutex
	sampledAt       time.Time
	sampledMessages int64
	sampledBytes    int64
	messageRate     float64
	byteRate        float64
}

// add counts one message.
func (m *meter) add(bytes int) {
	for ; m != nil; m = m.parent {
		m.messages.Add(1)
		m.bytes.Add(int64(bytes))
	}
}

// addMany counts several messages.
func (m *meter) addMany(messages, bytes int) {
	for ; m != nil; m = m.parent {
		m.messages.Add(int64(messages))
		m.bytes.Add(int64(bytes))
	}
}

// rates returns messages and bytes per second between the last two calls that were at least a
// second apart.
func (m *meter) rates(at time.Time) (messages, bytes float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, size := m.messages.Load(), m.bytes.Load()
	switch elapsed := at.Sub(m.sampledAt); {
	case m.sampledAt.IsZero():
		m.sampledAt, m.sampledMessages, m.sampledBytes = at, n, size
	case elapsed >= time.Second:
		m.messageRate = float64(n-m.sampledMessages) / elapsed.Seconds()
		m.byteRate = float64(size-m.sampledBytes) / elapsed.Seconds()
		m.sampledAt, m.sampledMessages, m.sampledBytes = at, n, size
	}
	return m.messageRate, m.byteRate
}
