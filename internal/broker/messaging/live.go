package messaging

import (
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/storage/engine"
)

// liveTopic is what the broker remembers of a topic that was used since it
// opened: turns, counters and open streams. It is not durable.
type liveTopic struct {
	turn  atomic.Uint32 // of messages without a key
	rules atomic.Pointer[rulesAt]
	in    meter
	out   meter
	acks  meter
	dead  meter // messages moved to a dead letter topic
	// producers are the idempotent producers of the stream protocol, by partition.
	producers sync.Map // int32 → *producerTable
	// left says that another member has the topic now, or that it is gone: what this
	// knows of producers is not to be used any more.
	left atomic.Bool
	subs sync.Map // subscription name → *liveSubscription, for those that were used
}

// rulesAt are a topic's rules by one state of the catalogue, which is named and
// not kept: idle topics would hold old states in memory.
type rulesAt struct {
	position uint64
	rules
}

// rulesOf returns the rules in force for a topic, worked out once for every
// state of the catalogue.
func (b *Broker) rulesOf(t *topic, live *liveTopic) *rules {
	// The position first: rules may be newer than it says, but never older.
	position := b.catalogue.Position()
	at := live.rules.Load()
	if at == nil || at.position != position {
		at = &rulesAt{position: position, rules: b.catalogue.View().rules(t, &b.limits)}
		live.rules.Store(at)
	}
	return &at.rules
}

// murmur2 says whether keys are routed as the clients of the stream protocol do.
func (*liveTopic) murmur2(t *topic) bool { return t.policies.Stream[configRouting] == routingMurmur2 }

type liveSubscription struct {
	out  meter
	acks meter

	open    atomic.Int32 // how many streams there are
	mu      sync.Mutex
	streams map[*Stream]struct{}
}

func (b *Broker) liveOf(id engine.TopicID) *liveTopic {
	if l, ok := b.live.Load(id); ok {
		return l.(*liveTopic)
	}
	l, _ := b.live.LoadOrStore(id, b.newLive(id))
	return l.(*liveTopic)
}

// subscription returns the memory of a subscription. It is called only after
// the engine has said that there is one, so that callers who make names up
// leave nothing behind.
func (l *liveTopic) subscription(name string) *liveSubscription {
	if s, ok := l.subs.Load(name); ok {
		return s.(*liveSubscription)
	}
	s, _ := l.subs.LoadOrStore(name, &liveSubscription{acks: meter{sum: &l.acks}})
	return s.(*liveSubscription)
}

// end tells the streams of a deleted subscription, which may be waiting for
// credit and not for the engine.
func (s *liveSubscription) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		select {
		case stream.ended <- why:
		default:
		}
	}
}

// endSubscription forgets a deleted subscription.
func (l *liveTopic) endSubscription(name string, why error) {
	if s, ok := l.subs.LoadAndDelete(name); ok {
		s.(*liveSubscription).end(why)
	}
}

// meter counts messages and bytes, and knows how fast they came.
type meter struct {
	messages atomic.Int64
	bytes    atomic.Int64
	sum      *meter // counts the same for more than this; may be nil

	mu           sync.Mutex
	at           time.Time
	seenMessages int64
	seenBytes    int64
	messageRate  float64
	byteRate     float64
}

// add counts one message.
func (m *meter) add(bytes int) {
	for ; m != nil; m = m.sum {
		m.messages.Add(1)
		m.bytes.Add(int64(bytes))
	}
}

// addMany counts several messages.
func (m *meter) addMany(messages, bytes int) {
	for ; m != nil; m = m.sum {
		m.messages.Add(int64(messages))
		m.bytes.Add(int64(bytes))
	}
}

// rates returns messages and bytes per second between the last two looks that
// were at least a second apart.
func (m *meter) rates(at time.Time) (messages, bytes float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, size := m.messages.Load(), m.bytes.Load()
	switch elapsed := at.Sub(m.at); {
	case m.at.IsZero():
		m.at, m.seenMessages, m.seenBytes = at, n, size
	case elapsed >= time.Second:
		m.messageRate = float64(n-m.seenMessages) / elapsed.Seconds()
		m.byteRate = float64(size-m.seenBytes) / elapsed.Seconds()
		m.at, m.seenMessages, m.seenBytes = at, n, size
	}
	return m.messageRate, m.byteRate
}
