package ensemble

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"freshet/internal/base/retry"
)

// leadership is the state of leader election. The elected member runs the controllers, garbage
// collection, the first start, and scheduled backups.
type leadership struct {
	begun  atomic.Bool
	ctx    context.Context // ends with StopLeading
	cancel context.CancelFunc
	ended  chan struct{} // closed when the election has ended
}

func newLeadership() leadership {
	ctx, cancel := context.WithCancel(context.Background())
	return leadership{ctx: ctx, cancel: cancel, ended: make(chan struct{})}
}

// leadBackoff is the backoff of an elected member whose work failed.
const leadBackoff = time.Second

// Lead takes part in the leader election until the context or StopLeading ends it, and runs work
// while this member leads. When work fails, this or another member runs it again. Lead is called
// once and returns nil when the election has ended.
func (m *Member) Lead(ctx context.Context, work func(context.Context) error) error {
	l := &m.leadership
	l.begun.Store(true)
	defer close(l.ended)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	m.membership.Load().Lead(ctx, func(ctx context.Context) { m.lead(ctx, work) })
	return nil
}

// lead runs work on the elected member.
func (m *Member) lead(ctx context.Context, work func(context.Context) error) {
	err := work(ctx)
	if ctx.Err() != nil {
		return
	}
	m.opts.Log.Error("controllers of the ensemble failed on this member; it or another member retries",
		slog.Any("error", err))
	_ = retry.Sleep(ctx, leadBackoff)
}

// StopLeading hands the leadership over to another member. It closes the channel when that is
// done. It is the first step of a shutdown, so that the next leader does not wait for the
// other steps.
func (m *Member) StopLeading(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	m.leadership.cancel()
	if !m.leadership.begun.Load() {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		select {
		case <-m.leadership.ended:
		case <-ctx.Done():
		}
		m.SetReady(ctx, false)
	}()
	return done
}
