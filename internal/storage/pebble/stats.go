package pebble

import (
	"context"
	"errors"
	"sort"
	"time"

	"freshet/internal/storage/engine"
)

// DescribeTopic implements engine.Topics.
func (e *Engine) DescribeTopic(ctx context.Context, id engine.TopicID) (engine.TopicStats, error) {
	t, err := e.begin(ctx, id)
	if err != nil {
		return engine.TopicStats{}, err
	}
	defer t.end()
	return t.describe(ctx)
}

func (t *topic) describe(ctx context.Context) (engine.TopicStats, error) {
	stats := engine.TopicStats{Config: *t.config.Load()}
	t.e.commit.mu.Lock()
	for _, p := range *t.parts.Load() {
		stats.Partitions = append(stats.Partitions, engine.PartitionStats{
			First:       p.first.Load(),
			Next:        p.durable.Load(),
			Bytes:       p.durableCum - p.firstCum.Load(),
			LastPublish: p.durablePublish,
		})
	}
	t.e.commit.mu.Unlock()
	for _, name := range t.subscriptionNames() {
		s, err := t.subscription(ctx, name)
		if err == nil {
			var sub engine.SubscriptionStats
			if sub, err = s.describe(); err == nil {
				stats.Subscriptions = append(stats.Subscriptions, sub)
				continue
			}
		}
		if t.deleted.Load() {
			return engine.TopicStats{}, engine.ErrNoTopic
		}
		if !errors.Is(err, engine.ErrNoSubscription) { // deleted meanwhile
			return engine.TopicStats{}, err
		}
	}
	return stats, nil
}

func (t *topic) subscriptionNames() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := make([]string, 0, len(t.subs))
	for name := range t.subs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (s *subscription) describe() (engine.SubscriptionStats, error) {
	if err := s.lockLoaded(); err != nil {
		return engine.SubscriptionStats{}, err
	}
	defer s.mu.Unlock()
	now := time.Now()
	s.dispatchLocked(now)
	stats := engine.SubscriptionStats{
		Name:        s.name,
		Config:      s.config,
		Leased:      uint64(s.leased),
		Delayed:     uint64(len(s.timers) - s.leased),
		Waiting:     s.waiters.n,
		Redelivered: s.counts.redelivered,
		Filtered:    s.counts.filtered,
	}
	for _, c := range s.cursors {
		stats.Cursors = append(stats.Cursors, engine.CursorStats{Floor: c.floor, Acked: c.above})
		stats.Delayed += c.part.countDelayed(now.UnixMilli(), func(entry uint64) bool {
			return entry >= c.next && entry < c.part.durable.Load() && !c.isAckedLocked(entry)
		})
	}
	t := s.topic
	t.e.commit.mu.Lock()
	defer t.e.commit.mu.Unlock()
	for _, c := range s.cursors {
		stats.Backlog += c.backlogLocked()
		stats.BacklogBytes += max(0, c.part.durableCum-c.acked)
	}
	return stats, nil
}
