package messaging

import (
	"context"

	"freshet/internal/storage/engine"
)

// In an ensemble every member has the catalogue, but only the owner of a shard has the in-memory
// state of its topics: meters, open push consumers and idempotent producers. The state is dropped
// when the ownership ends.

// AcquireShard reconciles the engine of a shard that this member has begun to own with the catalogue.
// Calls may use the shard before AcquireShard returns: repair creates topics that the engine lacks.
func (b *Broker) AcquireShard(ctx context.Context, shard int, owned engine.Topics) error {
	b.ReleaseShard(shard) // state from before this member became the owner
	return b.topics.reconcile(ctx, owned, func(id engine.TopicID) bool { return b.Catalogue.shardOf(id) == shard })
}

// ReleaseShard drops the in-memory state of a shard's topics. Open push consumers end, so that clients
// reconnect to the new owner.
func (b *Broker) ReleaseShard(shard int) {
	b.live.byID.Range(func(key, _ any) bool {
		if id := key.(engine.TopicID); b.Catalogue.shardOf(id) == shard {
			b.live.drop(id, ErrClosing)
		}
		return true
	})
}

// ConfigureOwnedTopic passes the current rules of a topic to an engine that this member owns, after another member
// has changed them. Only the owner configures its engine, always with the newest rules, so that an
// older change cannot overwrite them.
func (b *Broker) ConfigureOwnedTopic(ctx context.Context, owned engine.Topics, id engine.TopicID) error {
	return b.topics.configureExisting(ctx, owned, id)
}
