package replicated

import (
	"context"
	"net/http"

	"freshet/internal/engine"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Shard is this member's part in a shard: a copy of it, and its engine while this
// member is the owner.
type Shard struct{}

// Open opens the member's copy. It follows the log, and campaigns for the shard, in
// the background; Status says when it cannot.
func Open(ctx context.Context, o Options) (*Shard, error) { return nil, engine.ErrNotOpen }

// Engine returns the engine while this member is the owner, else ErrNotOwner or
// ErrNoOwner.
func (s *Shard) Engine() (engine.Engine, error) { return nil, engine.ErrNoOwner }

// Owner returns who serves the shard.
func (s *Shard) Owner() engine.Owner { return engine.Owner{} }

// Status returns how the shard is doing.
func (s *Shard) Status() Status { return Status{} }

// HandOver gives up ownership, and does not campaign again: for the end of the
// process. It returns when callers are answered and the key is free.
func (s *Shard) HandOver(ctx context.Context) error { return nil }

// Checkpoint writes a copy of the store to a directory that does not exist yet.
func (s *Shard) Checkpoint(ctx context.Context, dir string) error { return nil }

// Close closes the copy; HandOver first makes that quick for others.
func (s *Shard) Close() error { return nil }

// Destroy removes the log and the keys of a shard that no member has open.
func Destroy(ctx context.Context, o Options) error { return nil }

// Handler serves checkpoints of shards to other members. It is mounted at the base
// that Options.Peer names, behind mutual TLS.
func Handler(find func(cluster string, number int) *Shard) http.Handler { return http.NotFoundHandler() }

// WatchLease returns whether a lease of the member surely holds. It ends with ctx.
func WatchLease(ctx context.Context, client *clientv3.Client, session func() *concurrency.Session) (live func() bool) {
	return func() bool { return false }
}
