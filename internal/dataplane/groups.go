package dataplane

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"freshet/internal/groups"
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
func (c *Cluster) Groups(ctx context.Context, initialDelay time.Duration, log *slog.Logger) (*groups.Coordinator, error) {
	l := c.groups
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, groups.ErrClosed
	}
	if l.opened == nil {
		opened, err := groups.Open(ctx, c.Engine, groups.Options{InitialDelay: initialDelay, Logger: log})
		if err != nil {
			return nil, err
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
