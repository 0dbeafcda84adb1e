package pebble

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/engine"
)

// undertaker moves messages that were delivered too often to their dead letter
// topic: the copy and the acknowledgement are one write.
type undertaker struct {
	e     *Engine
	mu    sync.Mutex
	queue []*item
	nudge chan struct{}
	stop  chan struct{}
	ended chan struct{}
}

func (u *undertaker) start(e *Engine) {
	u.e = e
	u.nudge = make(chan struct{}, 1)
	u.stop = make(chan struct{})
	u.ended = make(chan struct{})
	go u.run()
}

func (u *undertaker) close() {
	close(u.stop)
	<-u.ended
}

// bury takes a dead item over.
func (u *undertaker) bury(it *item) {
	u.mu.Lock()
	u.queue = append(u.queue, it)
	u.mu.Unlock()
	select {
	case u.nudge <- struct{}{}:
	default:
	}
}

func (u *undertaker) run() {
	defer close(u.ended)
	for {
		select {
		case <-u.nudge:
		case <-u.stop:
			return
		}
		u.mu.Lock()
		queue := u.queue
		u.queue = nil
		u.mu.Unlock()
		for _, it := range queue {
			if err := u.move(it); err != nil {
				u.revive(it, err)
			}
		}
	}
}

// move copies the message to the dead letter topic and acknowledges it.
func (u *undertaker) move(it *item) error {
	e, c := u.e, it.cur
	s := c.sub
	s.mu.Lock()
	to := s.config.DeadLetterTopic
	s.mu.Unlock()
	r, size, err := c.part.read(it.entry)
	if errors.Is(err, cdb.ErrNotFound) {
		s.vanish(it)
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t, err := e.topics.acquire(ctx, to)
	if err != nil {
		return err
	}
	defer t.release()
	p, err := t.partition(0)
	if err != nil {
		return err
	}
	letter := r.Message
	letter.DeliverAt = 0
	letter.Dedup = engine.DedupKey{} // a copy is no duplicate
	letter.Properties = append(letter.Properties, engine.Property{Key: engine.OriginProperty, Value: origin(r.ID)})
	d := prepare(&letter, nil)

	if err := s.use(); err != nil {
		return nil // deleted meanwhile: nothing left to move
	}
	defer s.mu.Unlock()
	if it.state != itemDead || c.items[it.entry] != it {
		return nil // acknowledged or reset meanwhile
	}
	g, err := e.commit.enter()
	if err != nil {
		return err
	}
	if err := t.accepts(); err != nil {
		e.commit.abandon()
		return err
	}
	now := time.Now()
	p.append(g, &d, now.UnixMilli())
	t.appended(g, now.UnixMilli())
	c.ack(g, it.entry, size)
	s.topic.settled(g, now.UnixMilli())
	e.commit.leave()
	s.dispatch(now)
	return nil
}

// origin names a message in a property.
func origin(id engine.MessageID) string {
	return strconv.FormatUint(uint64(id.Topic), 10) + ":" +
		strconv.FormatUint(id.Entry, 10) + ":" +
		strconv.FormatInt(int64(id.Partition), 10)
}

// revive hands a message out again that could not be moved: it is never lost.
func (u *undertaker) revive(it *item, why error) {
	s := it.cur.sub
	u.e.log.Warn("dead letter not moved; delivering the message again",
		"topic", uint64(s.topic.id), "subscription", s.name, "entry", it.entry, "error", why)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil || it.state != itemDead {
		return
	}
	s.drop(it)
	s.remember(nil, it)
	s.offer(it)
	s.dispatch(time.Now())
}
