package messaging

import (
	"context"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// In a group every member has the catalogue, and the topics of a shard are with its
// owner: counters, open streams and what is known of producers are there, and die
// with the ownership.

// Adopt makes a shard that this member has begun to own agree with the catalogue,
// before anybody uses it. The engine is the shard's own.
func (b *Broker) Adopt(ctx context.Context, shard int, owned engine.Engine) error {
	b.Abandon(shard) // what came in before this member was the owner
	return b.reconcile(ctx, owned, func(id engine.TopicID) bool { return b.shardOf(id) == shard })
}

// Abandon forgets what was known of a shard's topics. Open streams end, so that
// their consumers connect again and find the new owner.
func (b *Broker) Abandon(shard int) {
	b.live.Range(func(key, _ any) bool {
		if id := key.(engine.TopicID); b.shardOf(id) == shard {
			b.forget(id, ErrClosing)
		}
		return true
	})
}

// Tell gives an engine that this member owns the rules of a topic as they are now,
// after another member has changed them: only the owner tells its own engine, each
// time what is newest, so that the newest rules stay.
func (b *Broker) Tell(ctx context.Context, owned engine.Topics, id engine.TopicID) error {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, ok := c.byID.Get(id); !ok {
		return ErrNoTopic
	}
	return b.configureEngine(ctx, owned, id)
}

func (b *Broker) shardOf(id engine.TopicID) int {
	return int(uint64(id) % uint64(max(b.shards, 1))) //nolint:gosec // less than the number of shards
}

// beside is a new topic in the shard of another, so that what is moved from one to
// the other is one write.
func (b *Broker) beside(t *topic) topicRecord {
	if b.shards == 0 {
		return topicRecord{}
	}
	shard := b.shardOf(t.id)
	return topicRecord{Shard: &shard}
}

// IDOf returns the id of the topic that a name leads to, if this member knows it.
func (b *Broker) IDOf(ctx context.Context, name names.Topic) (engine.TopicID, bool) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return 0, false
	}
	return t.id, true
}
