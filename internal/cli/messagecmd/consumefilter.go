package messagecmd

import (
	"context"
	"sync"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// checkFilter returns an error unless the subscription has the filter of --filter.
func (o *consumeOptions) checkFilter(ctx context.Context, sub *client.Subscription) error {
	current, err := sub.Filter(ctx)
	if err != nil || current == o.filter {
		return err
	}
	has := "no filter"
	if current != "" {
		has = "the filter " + current
	}
	return hint.Add(errs.Newf(errs.Precondition, "subscription %s of topic %s has %s", sub.Name(),
		sub.Topic().ShortName(), has), "Consume without --filter, use another subscription, or change the filter for "+
		"all consumers with 'freshet subscription update'.")
}

// How long the server may need to pass over the next messages: while it has messages to evaluate, and when all are
// leased, by the evaluation or by consumers.
const (
	passOverTimeout = 5 * time.Second
	leasedTimeout   = 2 * time.Second
)

// passingOver returns a function that reports whether the server passes over messages of the subscription, so that
// more may arrive although none has for a while. It returns false if the caller may not see that.
func passingOver(ctx context.Context, sub *client.Subscription) func() bool {
	last, changed := int64(-1), time.Time{}
	return func() bool {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if filter, err := sub.Filter(ctx); err != nil || filter == "" {
			return false
		}
		stats, err := sub.Stats(ctx)
		if err != nil || stats.Backlog <= stats.Delayed {
			return false
		}
		if stats.FilterPassedOver > last {
			last, changed = stats.FilterPassedOver, time.Now()
		}
		timeout := passOverTimeout
		if stats.Backlog <= stats.Leased+stats.Delayed {
			timeout = leasedTimeout
		}
		return time.Since(changed) < timeout
	}
}

// minRecheck is how long an idleTimer waits at least before it calls more again.
const minRecheck = 50 * time.Millisecond

// idleTimer calls end after the time wait without messages, unless more reports that there may be more: then it
// waits again. A zero wait disables it.
type idleTimer struct {
	wait time.Duration
	more func() bool
	end  func()

	mu      sync.Mutex
	timer   *time.Timer // nil while it is stopped
	started int         // counts calls of restart and stop
}

func newIdleTimer(wait time.Duration, more func() bool, end func()) *idleTimer {
	i := &idleTimer{wait: wait, more: more, end: end}
	i.restart()
	return i
}

// stop stops the timer while a message is handled.
func (i *idleTimer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopLocked()
}

func (i *idleTimer) stopLocked() {
	i.started++
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// restart restarts the timer.
func (i *idleTimer) restart() { i.restartWith(i.wait) }

func (i *idleTimer) restartWith(wait time.Duration) {
	if i.wait <= 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopLocked()
	started := i.started
	i.timer = time.AfterFunc(wait, func() { i.expire(started) })
}

// expire ends the wait, unless the timer was stopped or restarted meanwhile.
func (i *idleTimer) expire(started int) {
	more := i.more()
	i.mu.Lock()
	current := i.started == started
	i.mu.Unlock()
	switch {
	case !current:
	case more:
		i.restartWith(max(i.wait, minRecheck))
	default:
		i.end()
	}
}
