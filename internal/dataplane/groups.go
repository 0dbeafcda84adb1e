package dataplane

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"freshet/internal/broker/groups"
)

// lazyGroups opens a cluster's consumer group coordinator on first use, so that a cluster
// without Kafka consumers does not pay for it. open is groups.Open on a single server and
// groups.OpenMember on a member. mu protects the fields below it and is held while the
// coordinator is opened.
type lazyGroups struct {
	open func(context.Context, groups.Journals, groups.Options) (*groups.Coordinator, error)

	mu     sync.Mutex
	opened *groups.Coordinator
	closed bool
}

// Groups returns the coordinator of the cluster's consumer groups, and opens it on first use.
func (c *Cluster) Groups(ctx context.Context, initialDelay time.Duration,
	log *slog.Logger,
) (*groups.Coordinator, error) {
	l := c.groups
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, groups.ErrClosed
	}
	if l.opened == nil {
		opened, err := l.open(ctx, c.Engine, groups.Options{
			InitialDelay: initialDelay, Quota: c.Quota, Logger: log,
		})
		if err != nil {
			return nil, err
		}
		if err := c.assignOwnedShards(ctx, opened); err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		l.opened = opened
	}
	return l.opened, nil
}

// OpenGroups returns the coordinator if it is open, else nil.
func (c *Cluster) OpenGroups() *groups.Coordinator {
	if !c.groups.mu.TryLock() {
		return nil // it is being opened
	}
	defer c.groups.mu.Unlock()
	if c.groups.closed {
		return nil
	}
	return c.groups.opened
}

func (l *lazyGroups) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}

// assignOwnedShards assigns to a new coordinator the journals of the shards that this member owns.
func (c *Cluster) assignOwnedShards(ctx context.Context, opened *groups.Coordinator) error {
	n := len(c.shards)
	for i, s := range c.shards {
		owned, err := s.Engine()
		if err != nil {
			continue // Acquired assigns it when this member becomes the owner
		}
		if err := eachJournal(i, n, func(j int) error { return opened.AcquireJournal(ctx, owned, j) }); err != nil {
			return err
		}
	}
	return nil
}

// eachJournal calls visit for the consumer group journals in a shard.
func eachJournal(shard, shards int, visit func(int) error) error {
	for j := shard; j < groups.JournalCount; j += shards {
		if err := visit(j); err != nil {
			return err
		}
	}
	return nil
}

// acquireShard takes over the consumer groups of a shard, if the coordinator is open.
func (l *lazyGroups) acquireShard(ctx context.Context, owned groups.Journals, shard, shards int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil || l.closed {
		return nil
	}
	return eachJournal(shard, shards, func(j int) error { return l.opened.AcquireJournal(ctx, owned, j) })
}

// releaseShard gives up the consumer groups of a shard to another member.
func (l *lazyGroups) releaseShard(shard, shards int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil || l.closed {
		return nil
	}
	return eachJournal(shard, shards, l.opened.ReleaseJournal)
}
