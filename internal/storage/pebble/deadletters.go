package pebble

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// deadLetterMover moves messages that were delivered too often to their dead letter topic.
// Within one store the copy and the acknowledgement are one atomic write.
type deadLetterMover struct {
	e       *Engine
	mu      sync.Mutex
	queue   []*item
	wakeup  chan struct{}
	stop    chan struct{}
	ended   chan struct{}
	onMoved atomic.Pointer[func(engine.TopicID)] // called for every message that was moved
}

func (m *deadLetterMover) start(e *Engine) {
	m.e = e
	m.wakeup = make(chan struct{}, 1)
	m.stop = make(chan struct{})
	m.ended = make(chan struct{})
	go m.run()
}

func (m *deadLetterMover) close() {
	close(m.stop)
	<-m.ended
}

// enqueue queues an item in the state itemDeadLetter.
func (m *deadLetterMover) enqueue(it *item) {
	m.mu.Lock()
	m.queue = append(m.queue, it)
	m.mu.Unlock()
	select {
	case m.wakeup <- struct{}{}:
	default:
	}
}

func (m *deadLetterMover) run() {
	defer close(m.ended)
	for {
		select {
		case <-m.wakeup:
		case <-m.stop:
			return
		}
		m.mu.Lock()
		queue := m.queue
		m.queue = nil
		m.mu.Unlock()
		for _, it := range queue {
			if err := m.move(it); err != nil {
				m.redeliver(it, err)
			}
		}
	}
}

// rejectLocked ends the lease of an item that a consumer rejects. The caller passes it to
// moveRejected. The caller holds s.mu.
func (s *subscription) rejectLocked(it *item) {
	s.dropLocked(it)
	it.state = itemDeadLetter
	s.deadLetters++
}

// moveRejected moves the messages that a consumer rejects, and returns the commit batch to wait
// for. An item that cannot be moved is delivered again, and moveRejected returns the first cause.
func (m *deadLetterMover) moveRejected(s *subscription, rejected []*item) (*commitBatch, error) {
	var failed error
	for _, it := range rejected {
		if err := m.move(it); err != nil {
			failed = cmp.Or(failed, err)
			m.redeliver(it, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changedIn, failed
}

// move copies the message to the dead letter topic and acknowledges it.
func (m *deadLetterMover) move(it *item) error {
	e, c := m.e, it.cur
	s := c.sub
	s.mu.Lock()
	to := s.config.DeadLetterTopic
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), deadLetterTimeout)
	defer cancel()
	r, size, err := c.part.read(ctx, it.entry)
	if errors.Is(err, cdb.ErrNotFound) {
		s.forgetTrimmed(it)
		return nil
	}
	if err != nil {
		return err
	}
	letter := letterOf(&r)
	t, err := e.topics.acquire(ctx, to)
	if errors.Is(err, engine.ErrNoTopic) && e.opts.DeadLetters != nil {
		return m.moveToOtherStore(ctx, it, to, &letter, size)
	}
	if err != nil {
		return err
	}
	defer t.release()
	p, err := t.partition(0)
	if err != nil {
		return err
	}
	d := prepare(&letter, nil)
	return m.acknowledge(it, size, func(g *commitBatch, now int64) error {
		if err := t.acceptsLocked(); err != nil {
			return err
		}
		p.appendLocked(g, &d, now)
		t.scheduleAfterAppendLocked(g, now)
		return nil
	})
}

// acknowledge acknowledges a message that is moved. It calls copyLocked with committer.mu held,
// to add the copy to the same commit batch; copyLocked is nil when the copy is durable already.
func (m *deadLetterMover) acknowledge(it *item, size int64, copyLocked func(g *commitBatch, now int64) error) error {
	c := it.cur
	s := c.sub
	if err := s.lockLoaded(); err != nil {
		return nil // the subscription was deleted meanwhile: there is nothing to acknowledge
	}
	defer s.mu.Unlock()
	if it.state != itemDeadLetter || c.items[it.entry] != it {
		return nil // acknowledged or reset meanwhile
	}
	g, err := m.e.commit.lockBatch()
	if err != nil {
		return err
	}
	now := time.Now()
	if copyLocked != nil {
		if err := copyLocked(g, now.UnixMilli()); err != nil {
			m.e.commit.unlock()
			return err
		}
	}
	c.ackLocked(g, it.entry, size)
	s.topic.scheduleAfterAckLocked(g, now.UnixMilli())
	if count := m.onMoved.Load(); count != nil {
		g.after = append(g.after, func() { (*count)(s.topic.id) })
	}
	m.e.commit.unlockAndCommit()
	s.dispatchLocked(now)
	return nil
}

// letterOf returns the copy of a message for the dead letter topic.
func letterOf(r *engine.Record) engine.Message {
	letter := r.Message
	letter.DeliverAt = 0
	letter.Dedup = engine.DedupKey{} // a copy is not a duplicate
	named := engine.Property{Key: engine.OriginProperty, Value: origin(r.ID)}
	if r.Run != 0 { // in front, because a record of a batch may have properties of any name
		letter.Properties = append([]engine.Property{named}, letter.Properties...)
	} else {
		letter.Properties = append(letter.Properties, named)
	}
	return letter
}

// deadLetterTimeout is the timeout for moving one dead letter, also to a topic of another
// store.
const deadLetterTimeout = 5 * time.Second

// moveToOtherStore moves a message to a topic of another store. The copy is durable before the
// message is acknowledged; a crash in between leads to a second copy.
func (m *deadLetterMover) moveToOtherStore(ctx context.Context, it *item, to engine.TopicID, letter *engine.Message,
	size int64,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.stop: // closing this store does not wait for another one
			cancel()
		case <-ctx.Done():
		}
	}()
	if _, err := m.e.opts.DeadLetters.Append(ctx, to, 0, []engine.Message{*letter}); err != nil {
		return err
	}
	return m.acknowledge(it, size, nil)
}

// origin returns the value of engine.OriginProperty.
func origin(id engine.MessageID) string {
	return strconv.FormatUint(uint64(id.Topic), 10) + ":" +
		strconv.FormatUint(id.Entry, 10) + ":" +
		strconv.FormatInt(int64(id.Partition), 10)
}

// redeliver makes a message that could not be moved available again, so that it is not
// lost.
func (m *deadLetterMover) redeliver(it *item, cause error) {
	s := it.cur.sub
	if m.e.stopCause() != nil {
		return
	}
	m.e.log.Warn("message could not be moved to the dead letter topic and is delivered again; create the topic or "+
		"change the subscription", slog.Uint64("topic", uint64(s.topic.id)), slog.String("subscription", s.name),
		slog.Int("partition", int(it.cur.part.index)), slog.Uint64("entry", it.entry), slog.Any("error", cause))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unusable != nil || it.state != itemDeadLetter {
		return
	}
	s.dropLocked(it)
	s.saveDeliveriesLocked(nil, it)
	s.makeReadyLocked(it)
	s.dispatchLocked(time.Now())
}
