package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"freshet/internal/base/retry"
)

// resolve learns the outcome of the entries that were sent, after one of them got no
// acknowledgement or an unexpected one. Meanwhile no other entry is sent.
//
// It reads the log from the last known message on. An entry is in the log when it is the
// next message of this epoch. Messages of older epochs in between are void, and so are own
// messages that were accepted without their predecessors (see record). A newer epoch means
// that the ownership has ended. At the end of the log, the first missing entry is sent
// again, on the condition that this still is the end: if an earlier attempt arrives late,
// one of the two is refused or void.
func (w *writer) resolve() error {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	w.mu.Lock()
	w.resolving = true
	w.mu.Unlock()
	pause := 10 * time.Millisecond
	var last error
	for {
		e := w.firstSent()
		if e == nil {
			return nil
		}
		moved, err := w.resolveOne(ctx, e)
		if errors.Is(err, errRival) {
			return err
		}
		if moved {
			pause = 10 * time.Millisecond
			continue
		}
		if err != nil {
			last = err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("outcome of the message after %d is unknown after %s: %w", w.known, resolveTimeout,
				errors.Join(last, ctx.Err()))
		}
		_ = retry.Wait(ctx, w.lost, pause)
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// firstSent returns the first entry whose outcome is unknown. When there is none, it sends
// the entries that were enqueued meanwhile.
func (w *writer) firstSent() *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 && w.queue[0].sent {
		return w.queue[0]
	}
	w.resolving = false
	w.next = w.known + 1
	for _, e := range w.queue {
		w.sendLocked(e)
	}
	return nil
}

// resolveOne reads the next message of the log, or sends the entry when there is none. It
// reports whether it made progress.
func (w *writer) resolveOne(ctx context.Context, e *entry) (moved bool, err error) {
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
	case !errors.Is(err, errNoMessage):
		return false, err
	}
	select { // drop the acknowledgement of an earlier attempt
	case <-e.acks:
	default:
	}
	w.mu.Lock()
	w.next = w.known + 1
	w.sendLocked(e)
	w.mu.Unlock()
	timer := time.NewTimer(ackTimeout)
	defer timer.Stop()
	select {
	case a := <-e.acks:
		if a.err == nil && a.seq == w.known+1 {
			w.finish(e, a.seq)
			return true, nil
		}
		return false, a.err
	case <-timer.C:
		return false, errors.New("log did not acknowledge the append")
	case <-w.elected:
		return false, errors.New("log has a new leader")
	case <-w.lost:
		return false, errRival
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
