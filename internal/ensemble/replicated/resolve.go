package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// resolve learns the outcome of entries that were sent, after the first of them got no
// acknowledgement in time (slow), or an unexpected one, or after the connection or the log's leader
// has changed. Unless the log is only slow, no other entry is sent meanwhile, because the log would
// refuse it.
//
// It asks the leader where the log ends (ask.go). While the log has messages that the writer does not
// know, resolve reads them. An entry is in the log when it is the next message of this epoch.
// Messages of older epochs in between are void, and so are own messages that were accepted without
// their predecessors (see record). A newer epoch means that the ownership has ended. When the log
// ended at a known message after the entry had been sent, all entries are sent again, each on the
// condition that the log ends right before it: if an earlier attempt arrives late, one of the two is
// refused or void.
func (w *writer) resolve(slow bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-w.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	i := inquiry{w: w, interval: maxAskInterval, slow: slow}
	if !slow {
		i.hurry()
	}
	begin := w.lastSent()
	for {
		e := w.sentUntil(begin)
		if e == nil {
			w.release()
			return nil
		}
		if e.since.IsZero() {
			e.since = time.Now()
		}
		done, err := i.step(ctx, e)
		if err != nil {
			return err
		}
		if done {
			w.release()
			return nil
		}
	}
}

func (w *writer) lastSent() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sends
}

// sentUntil returns the first entry of the queue when its last attempt is not after the given one.
func (w *writer) sentUntil(attempt uint64) *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 || w.queue[0].attempt == 0 || w.queue[0].attempt > attempt {
		return nil
	}
	return w.queue[0]
}

// release lets entries be sent again, and sends those that were enqueued meanwhile.
func (w *writer) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.holding || w.err != nil {
		return
	}
	w.holding = false
	if len(w.queue) > 0 && w.queue[0].attempt == 0 { // nothing is in flight
		w.next = w.known + 1
	}
	for _, e := range w.queue {
		if e.attempt == 0 {
			w.sendLocked(e)
		}
	}
}

// sendAgain sends all entries again, after the last message of the log that is known.
func (w *writer) sendAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.next = w.known + 1
	for _, e := range w.queue {
		w.sendLocked(e)
	}
}

// inquired is what the writer learned about an entry while it was the first one of the queue.
type inquired struct {
	since    time.Time // of the first question
	accepted time.Time // when the leader last had a message at the entry's place
	repeats  int       // how often it was sent again
}

// inquiry is the state of resolve. The writer's goroutine uses it.
type inquiry struct {
	w        *writer
	slow     bool          // the log is only slow, as far as the writer knows
	interval time.Duration // until the next question
	latest   answer        // the zero value covers no entry
	failure  error         // the latest one
}

// hurry is called when messages may have been dropped: the connection or the leader has changed, or
// the log has refused an append. It stops the sending of entries until release.
func (i *inquiry) hurry() {
	i.slow, i.interval = false, firstAskInterval
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.holding = true
}

// step asks about the first entry and acts on the answer. done means that the entry was sent again, or
// that a slow log has acknowledged it.
func (i *inquiry) step(ctx context.Context, e *entry) (done bool, err error) {
	w := i.w
	if err := i.expired(e); err != nil {
		return false, err
	}
	if !i.latest.covers(e) {
		w.ask()
		if acked, err := i.await(e, w.answers); err != nil || acked || !i.latest.covers(e) {
			return acked && i.slow, err
		}
	}
	answered := i.latest
	if answered.end <= w.known {
		if e.repeats > 0 { // the log refuses it again and again
			i.latest, i.interval = answer{}, min(firstAskInterval<<min(e.repeats, 10), maxAskInterval)
			if acked, err := i.await(e, nil); err != nil || acked {
				return false, err
			}
		}
		e.repeats++
		w.sendAgain()
		return true, nil
	}
	e.accepted, i.latest = time.Now(), answer{}
	if i.slow { // the acknowledgement is probably on its way
		if acked, err := i.await(e, nil); err != nil || acked {
			return acked, err
		}
	}
	if moved, err := i.read(ctx, e); err != nil || moved {
		i.latest = answered
		return false, err
	}
	acked, err := i.await(e, nil)
	return acked && i.slow, err
}

// expired returns an error when the writer has to give up the entry.
func (i *inquiry) expired(e *entry) error {
	w := i.w
	w.mu.Lock()
	extra := askFactor * w.flow.expected(e.ahead)
	w.mu.Unlock()
	heard := e.since
	if e.accepted.After(heard) {
		heard = e.accepted
	}
	if time.Since(heard) < silenceTimeout+extra && time.Since(e.since) < stuckTimeout+extra {
		return nil
	}
	err := fmt.Errorf("outcome of the message after %d is unknown after %s", w.known,
		time.Since(e.since).Round(time.Millisecond))
	if i.failure != nil {
		err = fmt.Errorf("%w: %w", err, i.failure)
	}
	return err
}

// await waits for the acknowledgement of the entry, an answer that covers it, or the time of the next
// question. It reports whether the entry was acknowledged.
func (i *inquiry) await(e *entry, answers <-chan answer) (acked bool, err error) {
	w := i.w
	timer := time.NewTimer(i.interval)
	defer timer.Stop()
	for {
		select {
		case a := <-e.acks:
			if a.err == nil && a.seq == w.known+1 {
				w.finish(e, a.seq)
				return true, nil
			}
			if a.err != nil {
				i.failure = a.err
			}
			i.hurry() // and wait for an answer, which a refusal is too
		case i.latest = <-answers:
			if i.latest.covers(e) {
				return false, nil
			}
		case <-timer.C:
			i.interval = min(2*i.interval, maxAskInterval)
			return false, nil
		case <-w.elected:
			i.hurry()
			return false, nil
		case _, open := <-w.reopened:
			w.watchConnection(open)
			i.hurry()
			return false, nil
		case <-w.lost:
			return false, errRival
		}
	}
}

// read reads the message after the known ones. It reports whether there was one.
func (i *inquiry) read(ctx context.Context, e *entry) (moved bool, err error) {
	w := i.w
	r, err := w.st.read(ctx, w.elected, w.known+1)
	switch {
	case err == nil && r.epoch == e.epoch && r.owner == e.owner && r.index == e.index:
		w.finish(e, r.seq)
		return true, nil
	case err == nil && (r.epoch > e.epoch || e.isEpoch()):
		return false, fmt.Errorf("%w: message %d has epoch %d and owner %s", errRival, r.seq, r.epoch, r.owner)
	case err == nil:
		w.mu.Lock()
		w.known = r.seq // void
		w.mu.Unlock()
		return true, nil
	case !errors.Is(err, errNoMessage): // otherwise the message is accepted and not committed yet
		i.failure = err
	}
	return false, nil
}
