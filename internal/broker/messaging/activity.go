package messaging

import (
	"context"

	"freshet/internal/storage/engine"
)

// Activity is the part of a topic's statistics that is in memory: reading it loads no topic. Counters
// start at 0 when the broker opens, and when the topic gets another owner.
type Activity struct {
	In, Out, Acks int64 // messages
	Errors        int64 // messages that were rejected, not stored, or moved to a dead letter topic
}

// Sum returns a number that grows with every use of the topic.
func (a Activity) Sum() int64 { return a.In + a.Out + a.Acks + a.Errors }

func activityOf(in, out, acks, dead, failed *meter) Activity {
	return Activity{
		In: in.messages.Load(), Out: out.messages.Load(), Acks: acks.messages.Load(),
		Errors: dead.messages.Load() + failed.messages.Load(),
	}
}

func (l *liveTopic) activity() Activity {
	return activityOf(&l.in, &l.out, &l.acks, &l.dead, &l.failed)
}

// Scan calls visit for up to limit topics with ids greater than after, with how much their activity has
// grown since the last Scan. It returns the last id, or 0 at the end. Only one goroutine may scan.
func (st *Statistics) Scan(after engine.TopicID, limit int,
	visit func(id engine.TopicID, moved int64),
) (last engine.TopicID) {
	n := 0
	st.catalogue.state.View().byID.Ascend(after+1, func(id engine.TopicID, _ *topic) bool {
		if n++; n > limit {
			return false
		}
		last = id
		var moved int64
		if found, ok := st.live.byID.Load(id); ok {
			live := found.(*liveTopic)
			sum := live.activity().Sum()
			moved = sum - live.scanned.Swap(sum)
		}
		visit(id, moved)
		return true
	})
	if n <= limit {
		return 0
	}
	return last
}

// Exists reports whether the catalogue in memory has a topic.
func (st *Statistics) Exists(id engine.TopicID) bool {
	_, ok := st.catalogue.state.View().byID.Get(id)
	return ok
}

// TopicActivity returns the activity of a topic; false if it was not used since the broker opened.
func (st *Statistics) TopicActivity(id engine.TopicID) (Activity, bool) {
	found, ok := st.live.byID.Load(id)
	if !ok {
		return Activity{}, false
	}
	return found.(*liveTopic).activity(), true
}

// ScanSubscriptions calls visit for the subscriptions of a topic that were used since the broker opened, with
// their activity and how much it has grown since the last call. Only one goroutine may scan.
func (st *Statistics) ScanSubscriptions(id engine.TopicID, visit func(name string, moved int64, now Activity)) {
	found, ok := st.live.byID.Load(id)
	if !ok {
		return
	}
	found.(*liveTopic).subs.Range(func(name, value any) bool {
		s := value.(*liveSubscription)
		now := Activity{Out: s.out.messages.Load(), Acks: s.acks.messages.Load()}
		visit(name.(string), now.Sum()-s.scanned.Swap(now.Sum()), now)
		return true
	})
}

// ClusterActivity returns the sum over all topics. It is less than before when a namespace was deleted.
func (st *Statistics) ClusterActivity() (sum Activity) {
	add := func(m *namespaceMeter) {
		a := activityOf(&m.in, &m.out, &m.acks, &m.dead, &m.failed)
		sum.In, sum.Out, sum.Acks, sum.Errors = sum.In+a.In, sum.Out+a.Out, sum.Acks+a.Acks, sum.Errors+a.Errors
	}
	st.live.namespaceMeters.byName.Range(func(_, m any) bool {
		add(m.(*namespaceMeter))
		return true
	})
	add(&st.live.namespaceMeters.overflow)
	return sum
}

// UsageOf calls visit with the usage of those topics that this server has in memory or remembers.
func (st *Statistics) UsageOf(ctx context.Context, ids []engine.TopicID, visit func(engine.Usage)) error {
	return st.engine.UsageOf(ctx, ids, visit)
}

// Describe returns the statistics of a topic's subscriptions from the engine, and loads the topic.
func (st *Statistics) Describe(ctx context.Context, id engine.TopicID) ([]engine.SubscriptionStats, error) {
	stats, err := st.catalogue.topics.engine.DescribeTopic(ctx, id)
	return stats.Subscriptions, err
}
