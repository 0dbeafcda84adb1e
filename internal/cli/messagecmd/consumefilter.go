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

// How long a consumer waits for a server that passes over no further message: while it has messages to evaluate, and
// when all are leased, by the evaluation or by consumers.
const (
	passOverTimeout = 5 * time.Second
	leasedTimeout   = 2 * time.Second
)

// passingOver returns a function that reports whether the server passes over messages of the subscription, so that
// more may arrive at a consumer that has received none since the given time. It returns false if the caller may not
// see that.
func passingOver(ctx context.Context, sub *client.Subscription) func(idleSince time.Time) bool {
	var progress passOverProgress
	return func(idleSince time.Time) bool {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		// Most subscriptions have no filter, and this request costs less than the topic's statistics.
		if filter, err := sub.Filter(ctx); err != nil || filter == "" {
			return false
		}
		stats, err := sub.Stats(ctx)
		return err == nil && progress.more(&stats, idleSince, time.Now())
	}
}

// passOverProgress follows how many messages of a subscription the server has passed over.
type passOverProgress struct {
	mu      sync.Mutex // guards the fields below: a wait may end while the one before still asks the server
	count   int64
	changed time.Time // when count was first seen
}

// more reports whether more messages may arrive: the server has messages to evaluate, and it has passed over or
// delivered one within the timeout.
func (p *passOverProgress) more(stats *client.SubscriptionStats, idleSince, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed.IsZero() || p.count != stats.FilterPassedOver {
		p.count, p.changed = stats.FilterPassedOver, now
	}
	latest := p.changed
	if idleSince.After(latest) {
		latest = idleSince
	}
	switch {
	case stats.Backlog <= stats.Delayed:
		return false
	case stats.Backlog <= stats.Leased+stats.Delayed:
		return now.Sub(latest) < leasedTimeout
	default:
		return now.Sub(latest) < passOverTimeout
	}
}

// minRecheck is how long an idleTimer waits at least before it calls more again.
const minRecheck = 50 * time.Millisecond

// idleTimer calls end after the time wait without messages, unless more reports that there may be more: then it
// waits again. A zero wait disables it.
type idleTimer struct {
	wait time.Duration
	more func(idleSince time.Time) bool
	end  func() // must not call the idleTimer

	mu      sync.Mutex  // guards the fields below
	timer   *time.Timer // nil while it is stopped
	started int         // counts the starts and stops of the timer
}

func newIdleTimer(wait time.Duration, more func(idleSince time.Time) bool, end func()) *idleTimer {
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

// restart restarts the timer, after a message or at the beginning.
func (i *idleTimer) restart() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.startLocked(i.wait, time.Now())
}

func (i *idleTimer) startLocked(wait time.Duration, idleSince time.Time) {
	i.stopLocked()
	if i.wait <= 0 {
		return
	}
	started := i.started
	i.timer = time.AfterFunc(wait, func() { i.expire(started, idleSince) })
}

// expire ends the wait, unless the timer was stopped or restarted meanwhile.
func (i *idleTimer) expire(started int, idleSince time.Time) {
	more := i.more(idleSince)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.started != started:
	case more:
		i.startLocked(max(i.wait, minRecheck), idleSince)
	default:
		i.end()
	}
}
