package messaging

import (
	"context"
	"sync"
)

// lifecycle ends the waits and the background work of a broker. All parts of the broker share it.
type lifecycle struct {
	draining context.Context //nolint:containedctx // cancelled by drain; ends long polls
	drain    context.CancelFunc
	ctx      context.Context //nolint:containedctx // context of background work, cancelled by end
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// newLifecycle returns a lifecycle that does not end with ctx.
func newLifecycle(ctx context.Context) *lifecycle {
	l := &lifecycle{}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.draining, l.drain = context.WithCancel(l.ctx)
	return l
}

// end drains, cancels background work and waits for it.
func (l *lifecycle) end() {
	l.cancel()
	l.work.Wait()
}

// untilDrain returns a context that ends with ctx, or when the broker drains. The caller must call
// stop.
func (l *lifecycle) untilDrain(ctx context.Context) (waiting context.Context, stop func()) {
	waiting, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(l.draining, cancel)
	return waiting, func() {
		detach()
		cancel()
	}
}
