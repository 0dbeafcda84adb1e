package pebble

import (
	"context"
	"fmt"
	"maps"
	"time"

	"freshet/internal/storage/engine"
)

const maxNameBytes = 4 << 10

func checkSubscription(name string, c engine.SubscriptionConfig) error {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Errorf("%w: name of a subscription must have 1 to %d bytes", engine.ErrInvalid, maxNameBytes)
	case c.Lease < 0:
		return fmt.Errorf("%w: lease must not be negative", engine.ErrInvalid)
	case c.MaxDeliveries > 0 && c.DeadLetterTopic == 0:
		return fmt.Errorf("%w: subscription with MaxDeliveries needs a DeadLetterTopic", engine.ErrInvalid)
	}
	return nil
}

// CreateSubscription implements engine.Subscriptions.
func (e *Engine) CreateSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig, at engine.Position,
) error {
	t, err := e.begin(ctx, id)
	if err != nil {
		return err
	}
	defer t.end()
	if err := checkSubscription(name, config); err != nil {
		return err
	}
	config.Properties = maps.Clone(config.Properties)
	g, err := t.subscribe(name, config, at)
	if err != nil {
		return err
	}
	return g.wait(ctx)
}

func (t *topic) subscribe(name string, config engine.SubscriptionConfig, at engine.Position) (*commitBatch, error) {
	t.admin.Lock()
	defer t.admin.Unlock()
	t.mu.RLock()
	_, exists := t.subs[name]
	t.mu.RUnlock()
	if exists {
		return nil, engine.ErrSubscriptionExists
	}
	targets, err := t.resolveLocked(at, target{stay: true})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.newSubscription(t.nextSub, name, config, *t.parts.Load())
	s.acksLoaded = true // a new subscription has nothing to load
	g, err := t.e.commit.lockBatch()
	if err != nil {
		return nil, err
	}
	defer t.e.commit.unlockAndCommit()
	if t.deleted.Load() {
		return nil, engine.ErrNoTopic
	}
	t.nextSub++
	s.createdBy = g
	for i, c := range s.cursors {
		if at := targets[i]; !at.stay {
			c.floor, c.acked = at.resolveLocked(c.part)
			c.next = c.floor
		}
		s.acked.Add(c.acked)
		if c.floor > 0 {
			c.saveLocked(g)
		}
	}
	g.setLocked(topicKey(ofConfig, t.id), packTopic(topicValue{config: *t.config.Load(), nextSub: t.nextSub}))
	g.setLocked(subKey(t.id, name), packSub(s.id, config))
	g.pinLocked(t)
	t.subs[name] = s
	t.e.totals.add(0, 1)
	return g, nil
}

// ConfigureSubscription implements engine.Subscriptions.
func (e *Engine) ConfigureSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig,
) error {
	if err := checkSubscription(name, config); err != nil {
		return err
	}
	config.Properties = maps.Clone(config.Properties)
	return e.change(ctx, id, name, func(s *subscription) (*commitBatch, error) {
		if err := s.lockLoaded(); err != nil {
			return nil, err
		}
		defer s.mu.Unlock()
		g, err := e.commit.lockBatch()
		if err != nil {
			return nil, err
		}
		defer e.commit.unlockAndCommit()
		s.config = config
		g.setLocked(subKey(id, name), packSub(s.id, config))
		g.pinLocked(s.topic)
		return g, nil
	})
}

// DeleteSubscription implements engine.Subscriptions.
func (e *Engine) DeleteSubscription(ctx context.Context, id engine.TopicID, name string) error {
	return e.change(ctx, id, name, func(s *subscription) (*commitBatch, error) {
		t := s.topic
		t.mu.Lock()
		defer t.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.unusable != nil {
			return nil, s.unusable
		}
		g, err := e.commit.lockBatch()
		if err != nil {
			return nil, err
		}
		defer e.commit.unlockAndCommit()
		s.retireLocked(g, engine.ErrNoSubscription)
		e.clock.disarm(s)
		delete(t.subs, name)
		e.totals.add(0, -1)
		g.deleteLocked(subKey(id, name))
		for _, kind := range []byte{ofCursor, ofAcks, ofCount} {
			prefix := ownedKey(kind, id, s.id)
			g.deleteRangeLocked(prefix, after(prefix))
		}
		g.pinLocked(t)
		g.after = append(g.after, func() { e.topics.forgetSub(id, s.id) })
		t.scheduleAfterAckLocked(g, time.Now().UnixMilli())
		return g, nil
	})
}

// ResetSubscription implements engine.Subscriptions.
func (e *Engine) ResetSubscription(ctx context.Context, id engine.TopicID, name string, at engine.Position) error {
	return e.change(ctx, id, name, func(s *subscription) (*commitBatch, error) {
		switch at.Kind {
		case engine.SkipN:
			return s.skipLocked(at.Count)
		case engine.SkipTime:
			return s.skipBeforeLocked(at.Time.UnixMilli())
		default:
			return s.seekLocked(at)
		}
	})
}

// change calls f with topic.admin held and waits until the change is durable.
func (e *Engine) change(ctx context.Context, id engine.TopicID, name string,
	f func(*subscription) (*commitBatch, error),
) error {
	s, err := e.beginSubscription(ctx, id, name)
	if err != nil {
		return err
	}
	defer s.topic.end()
	g, err := func() (*commitBatch, error) {
		s.topic.admin.Lock()
		defer s.topic.admin.Unlock()
		return f(s)
	}()
	if err != nil || g == nil {
		return err
	}
	return g.wait(ctx)
}
