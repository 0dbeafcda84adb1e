package history

import (
	"context"
	"slices"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// Limits of the work of one sample for subscriptions and groups.
const (
	maxTopicSubscriptions = 1000 // topics with more have no history of their subscriptions
	describeTopics        = 300  // topics that are described for the backlogs of their subscriptions
	measureGroups         = 250  // groups whose lag is measured; the others keep their last values
	measureTopics         = 500  // topics whose extent is read for the lags
	walkGroups            = 50_000
	walkEvery             = 4 // samples between two walks over all groups
)

// sampleSubscriptions samples the subscriptions of the topics that have a series.
func (p *sampler) sampleSubscriptions(ctx context.Context, at time.Time, c *Source,
	usage map[engine.TopicID]engine.Usage,
) {
	var busy []candidate
	activity := make(map[Key]messaging.Activity)
	for id, u := range usage {
		if u.Subscriptions > maxTopicSubscriptions {
			continue
		}
		c.Statistics.ScanSubscriptions(id, func(name string, moved int64, now messaging.Activity) {
			key := Key{Kind: Subscription, Cluster: c.UID, Topic: uint64(id), Name: name}
			activity[key] = now
			if moved > 0 && p.recorder.find(key) == nil {
				busy = append(busy, candidate{key, float64(moved) / sampleEvery.Seconds()})
			}
		})
	}
	p.admit(busy)
	byTopic := make(map[engine.TopicID][]Key)
	for _, key := range p.recorder.keys(Subscription, c.UID) {
		id := engine.TopicID(key.Topic)
		if !c.Statistics.Exists(id) {
			p.recorder.remove(key)
			continue
		}
		byTopic[id] = append(byTopic[id], key)
	}
	left := describeTopics
	for id, keys := range byTopic {
		u, owned := usage[id]
		if owned && p.mustDescribe(keys, activity, u) && left > 0 {
			left--
			p.describe(ctx, c, id, keys)
		}
		for _, key := range keys {
			p.sampleSubscription(at, key, activity, u, owned)
		}
	}
}

// mustDescribe reports whether a backlog of the subscriptions may have changed since the last sample. It
// does not load a topic: one that was not used since the start has no activity.
func (p *sampler) mustDescribe(keys []Key, activity map[Key]messaging.Activity, u engine.Usage) bool {
	for _, key := range keys {
		now, used := activity[key]
		s := p.recorder.find(key)
		if s != nil && used && (now.Out != s.before.out || now.Acks != s.before.in || u.Backlog != s.before.backlog ||
			isUnknown(s.before.kept[valueBacklog])) {
			return true
		}
	}
	return false
}

// describe reads the backlogs of a topic's subscriptions, and removes the series of those that do not exist.
func (p *sampler) describe(ctx context.Context, c *Source, id engine.TopicID, keys []Key) {
	found, err := c.Statistics.Describe(ctx, id)
	if err != nil {
		return // the next sample tries again
	}
	for _, key := range keys {
		i := slices.IndexFunc(found, func(s engine.SubscriptionStats) bool { return s.Name == key.Name })
		if i < 0 {
			p.recorder.remove(key)
			continue
		}
		if s := p.recorder.find(key); s != nil {
			s.before.kept[valueBacklog] = float32(found[i].Backlog)
			s.before.kept[valueStored] = float32(found[i].BacklogBytes)
			s.before.redelivered = int64(found[i].Redelivered) //nolint:gosec // a counter
		}
	}
}

func (p *sampler) sampleSubscription(at time.Time, key Key, activity map[Key]messaging.Activity, u engine.Usage,
	owned bool,
) {
	s := p.recorder.find(key)
	if s == nil {
		return
	}
	now := activity[key]
	// in counts acknowledgements: a subscription has no column for it.
	v, rate := s.rates(at, messaging.Activity{In: now.Acks, Out: now.Out, Errors: s.before.redelivered}, owned)
	s.before.backlog = u.Backlog
	switch {
	case !owned:
		s.before.kept = unknownSample()
	case u.Backlog == 0: // of the whole topic
		v[valueBacklog], v[valueStored] = 0, 0
	default:
		v[valueBacklog], v[valueStored] = s.before.kept[valueBacklog], s.before.kept[valueStored]
	}
	p.recorder.record(key, at, &v, rate)
}

// sampleGroups samples consumer groups, and looks for groups with members.
func (p *sampler) sampleGroups(ctx context.Context, at time.Time, c *Source, scan *clusterScan) {
	coordinator := c.Groups()
	if coordinator == nil {
		return
	}
	if scan.samples%walkEvery == 1 {
		p.walkGroups(c, coordinator)
	}
	keys := p.recorder.keys(Group, c.UID)
	slices.SortFunc(keys, func(a, b Key) int { // those that were not measured for the longest time come first
		return p.recorder.find(a).before.at.Compare(p.recorder.find(b).before.at)
	})
	m := extents{c: c, byTopic: make(map[uint64][]engine.Extent)}
	for i, key := range keys {
		s := p.recorder.find(key)
		rate := 0.0
		if i < measureGroups && ctx.Err() == nil {
			s.before.kept, rate = m.measure(ctx, at, coordinator, key, s)
		}
		p.recorder.record(key, at, &s.before.kept, rate)
	}
}

// walkGroups admits groups. A group has no counter that shows how busy it is before it has a series, so
// it counts as little used, and as unused if it has no members.
func (p *sampler) walkGroups(c *Source, coordinator *groups.Coordinator) {
	const littleUsed = 0.01
	var busy []candidate
	n := 0
	coordinator.Walk(func(use groups.GroupUsage) bool {
		key := Key{Kind: Group, Cluster: c.UID, Tenant: use.Key.Tenant, Name: use.Key.Group}
		switch {
		case p.recorder.find(key) != nil:
		case use.Members > 0:
			busy = append(busy, candidate{key, littleUsed})
		case use.Offsets > 0:
			busy = append(busy, candidate{key, 0})
		}
		n++
		return n < walkGroups
	})
	p.admit(busy)
}

// extents caches the extents of the topics that groups read.
type extents struct {
	c       *Source
	byTopic map[uint64][]engine.Extent
}

// measure returns the lag of a group and the rate at which its committed offsets grow.
func (m *extents) measure(ctx context.Context, at time.Time, coordinator *groups.Coordinator, key Key,
	s *series,
) (v sample, rate float64) {
	committed, err := coordinator.Committed(groups.Key{Tenant: key.Tenant, Group: key.Name})
	if err != nil {
		s.before.at = time.Time{} // another member coordinates the group
		return unknownSample(), 0
	}
	var sum int64
	lag, known := uint64(0), true
	committed.Each(func(part groups.Partition, o groups.Offset) {
		sum += o.Offset
		if list := m.of(ctx, uint64(part.Topic)); int(part.Partition) < len(list) {
			e := list[part.Partition]
			lag += groups.Lag(e.First, e.Next, o.Offset)
		} else if len(m.byTopic) >= measureTopics {
			known = false
		}
	})
	v, rate = s.rates(at, messaging.Activity{Out: sum}, true)
	if known && ctx.Err() == nil {
		v[valueBacklog] = float32(lag)
	}
	return v, rate
}

// of returns the extents of a topic's partitions; nil for a topic that does not exist.
func (m *extents) of(ctx context.Context, id uint64) []engine.Extent {
	known, ok := m.byTopic[id]
	if ok || len(m.byTopic) >= measureTopics {
		return known
	}
	m.byTopic[id] = nil
	topic, err := m.c.Kafka.KafkaTopicByID(ctx, id)
	if err != nil {
		return nil
	}
	if known, err = topic.Extents(ctx); err == nil {
		m.byTopic[id] = known
	}
	return m.byTopic[id]
}
