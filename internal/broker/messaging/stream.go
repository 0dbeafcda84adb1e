package messaging

import (
	"context"
	"errors"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Stream hands a subscription's messages out one after the other, as long as
// its consumer keeps settling them: at most its credits are unsettled at any
// time. Settlements are made with Settle, by whoever; a stream gets a credit
// back when it hears of one, or when the lease ends.
type Stream struct {
	b            *Broker
	target       target
	subscription string
	lease        time.Duration
	live         *liveSubscription

	mu      sync.Mutex
	credits int
	out     map[engine.MessageID]streamLease // unsettled
	changed chan struct{}                    // capacity 1: a credit came back
	ended   chan error                       // capacity 1: what it reads from was deleted
}

// streamLease is the lease of a message that a stream handed out.
type streamLease struct {
	delivery uint32
	until    time.Time
}

// StreamOptions configures a stream.
type StreamOptions struct {
	Credits int           // most unsettled messages; 0 means 100
	Lease   time.Duration // 0 means the subscription's
}

const defaultCredits = 100

// Stream opens a stream. The caller closes it.
func (b *Broker) Stream(ctx context.Context, name names.Topic, subscription string,
	opts StreamOptions,
) (*Stream, error) {
	if opts.Credits < 0 || opts.Credits > b.limits.Credits {
		return nil, errs.Newf(errs.Invalid, "%w: credits must be between 1 and %d", engine.ErrInvalid, b.limits.Credits)
	}
	if opts.Credits == 0 {
		opts.Credits = defaultCredits
	}
	if err := b.checkLease(opts.Lease); err != nil {
		return nil, err
	}
	t, _, err := b.describeSubscription(ctx, name, subscription)
	if err != nil {
		return nil, err
	}
	s := &Stream{
		b: b, target: t, subscription: subscription, lease: opts.Lease,
		live:    b.liveOf(t.id).subscription(subscription),
		credits: opts.Credits, out: make(map[engine.MessageID]streamLease), changed: make(chan struct{}, 1),
		ended: make(chan error, 1),
	}
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if s.live.streams == nil {
		s.live.streams = make(map[*Stream]struct{})
	}
	s.live.streams[s] = struct{}{}
	s.live.open.Add(1)
	return s, nil
}

// streamBatch bounds one step of a stream, so that a slow reader holds little.
const streamBatch = 32

// Next returns the next messages, none when there were none within the wait.
// It returns ErrClosing when the broker drains.
func (s *Stream) Next(ctx context.Context, wait time.Duration) ([]Received, error) {
	deadline := time.Now().Add(wait)
	for {
		if s.b.draining.Err() != nil {
			return nil, ErrClosing
		}
		select {
		case err := <-s.ended:
			return nil, err
		default:
		}
		free, next := s.free(time.Now())
		if free > 0 {
			received, err := s.receive(ctx, min(free, streamBatch), time.Until(deadline))
			if err == nil && len(received) == 0 && s.b.draining.Err() != nil {
				err = ErrClosing
			}
			return received, err
		}
		until := deadline
		if next.Before(until) {
			until = next
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-s.changed:
		case <-timer.C:
		case err := <-s.ended:
			timer.Stop()
			return nil, err
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-s.b.draining.Done():
			timer.Stop()
			return nil, ErrClosing
		}
		timer.Stop()
		if !time.Now().Before(deadline) {
			return nil, nil
		}
	}
}

func (s *Stream) receive(ctx context.Context, n int, wait time.Duration) ([]Received, error) {
	req := engine.ReceiveRequest{
		Max: n, MaxBytes: s.b.limits.MessageBytes, Lease: s.lease,
		Partition: s.target.partition,
	}
	received, err := s.b.receive(ctx, s.target, s.subscription, req, wait)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range received {
		id, err := s.target.engineID(received[i].ID)
		if err != nil {
			continue // cannot be: the id was made from the same target
		}
		s.out[id] = streamLease{delivery: received[i].Redeliveries + 1, until: received[i].LeasedUntil}
	}
	return received, nil
}

// free returns how many credits there are, and when the next lease ends.
func (s *Stream) free(at time.Time) (int, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := at.Add(time.Hour)
	for id, l := range s.out {
		if !l.until.After(at) {
			delete(s.out, id)
		} else if l.until.Before(next) {
			next = l.until
		}
	}
	return s.credits - len(s.out), next
}

// settled hears what was said about messages of the subscription.
func (s *Stream) settled(list []engine.Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.out)
	for i := range list {
		st := &list[i]
		switch st.Action {
		case Extend:
			if l, ok := s.out[st.ID]; ok {
				l.until = time.Now().Add(st.Delay)
				s.out[st.ID] = l
			}
		case AckTo:
			for id := range s.out {
				if id.Partition == st.ID.Partition && id.Entry <= st.ID.Entry {
					delete(s.out, id)
				}
			}
		default:
			delete(s.out, st.ID)
		}
	}
	if len(s.out) < before {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// Close ends the stream and gives back at once what its consumer did not
// settle, as when a Pulsar consumer disconnects.
func (s *Stream) Close() error {
	s.live.mu.Lock()
	if _, ok := s.live.streams[s]; !ok {
		s.live.mu.Unlock()
		return nil
	}
	delete(s.live.streams, s)
	s.live.open.Add(-1)
	s.live.mu.Unlock()

	s.mu.Lock()
	var list []engine.Settlement
	for id, l := range s.out {
		list = append(list, engine.Settlement{ID: id, Action: engine.Release, Delivery: l.delivery})
	}
	s.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	// The caller's context is most likely done; this must happen all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.b.ctx), giveBackTimeout)
	defer cancel()
	err := s.b.engine.Settle(ctx, s.target.id, s.subscription, list)
	if errors.Is(err, ErrNoSubscription) || errors.Is(err, ErrNoTopic) {
		return nil // deleted: there is nothing to give back to
	}
	return err
}

const giveBackTimeout = 5 * time.Second

// GiveBack returns messages that never reached their consumer, at once. What
// somebody settled meanwhile stays settled.
func (b *Broker) GiveBack(name names.Topic, subscription string, received []Received) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), giveBackTimeout)
	defer cancel()
	t, err := b.resolve(ctx, name)
	if err != nil {
		return err
	}
	list := make([]engine.Settlement, len(received))
	for i := range received {
		id, err := t.engineID(received[i].ID)
		if err != nil {
			return err
		}
		list[i] = engine.Settlement{ID: id, Action: engine.Release, Delivery: received[i].Redeliveries + 1}
	}
	return b.engine.Settle(ctx, t.id, subscription, list)
}
