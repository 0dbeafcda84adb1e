package dataplane

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"freshet/internal/broker/groups"
)

// lazyGroups are the consumer groups of a cluster, opened when somebody needs
// them first: a cluster that nobody streams from does not pay for them. mu guards
// both fields and is held while they are opened.
type lazyGroups struct {
	mu     sync.Mutex
	opened *groups.Coordinator
	closed bool
}

// Groups returns the coordinator of the cluster's consumer groups.
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
		opened, err := groups.Open(ctx, c.Engine,
			groups.Options{InitialDelay: initialDelay, Logger: log, Shared: c.shared != nil})
		if err != nil {
			return nil, err
		}
		if err := c.gainOwned(ctx, opened); err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		l.opened = opened
	}
	return l.opened, nil
}

// OpenGroups returns the coordinator if somebody has needed it already; else nil.
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

// gainOwned gives a new coordinator the journals of the shards that this member owns
// already.
func (c *Cluster) gainOwned(ctx context.Context, opened *groups.Coordinator) error {
	if c.shared == nil {
		return nil
	}
	n := len(c.shared.slots)
	for i, s := range c.shared.slots {
		owned, err := s.Engine()
		if err != nil {
			continue // it is gained when it becomes this member's
		}
		if err := eachJournal(i, n, func(j int) error { return opened.Gain(ctx, owned, j) }); err != nil {
			return err
		}
	}
	return nil
}

// eachJournal calls visit for the journals of consumer groups that are in a shard.
func eachJournal(shard, shards int, visit func(int) error) error {
	for j := shard; j < groups.JournalCount; j += shards {
		if err := visit(j); err != nil {
			return err
		}
	}
	return nil
}

// gain takes over the groups of a shard, if anybody has needed groups yet.
func (l *lazyGroups) gain(ctx context.Context, owned groups.Journals, shard, shards int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil || l.closed {
		return nil
	}
	return eachJournal(shard, shards, func(j int) error { return l.opened.Gain(ctx, owned, j) })
}

// lose leaves the groups of a shard to another member.
func (l *lazyGroups) lose(shard, shards int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil || l.closed {
		return nil
	}
	return eachJournal(shard, shards, l.opened.Lose)
}
