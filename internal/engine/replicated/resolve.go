package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// resolve finds out what became of the entries that were sent, after one of them had
// no answer, or another than that it is in the log. Meanwhile nothing new is sent.
//
// An entry is in the log when the log has a message of this ownership at its
// sequence, since the owner has never given that sequence to another. When the log
// has somebody else's there, the ownership is over. When it has none, the entry is
// sent again, on the same condition as before: if the first attempt arrives in spite
// of all, one of the two is refused.
func (w *writer) resolve() error {
	ctx, cancel := context.WithTimeout(context.Background(), resolvePatience)
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
		in, err := w.resolveOne(ctx, e)
		if errors.Is(err, errRival) {
			return err
		}
		if in {
			w.finish(e)
			continue
		}
		if err != nil {
			last = err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("log did not say within %s what became of message %d: %w", resolvePatience, e.seq, errors.Join(last, ctx.Err()))
		}
		select {
		case <-w.lost:
			return errRival
		default:
		}
		w.pause(ctx, pause)
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// firstSent returns the first entry whose fate is open. When there is none it sends
// what came meanwhile.
func (w *writer) firstSent() *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 && w.queue[0].sent {
		return w.queue[0]
	}
	w.resolving = false
	for _, e := range w.queue {
		w.sendLocked(e)
	}
	return nil
}

// resolveOne says whether an entry is in the log.
func (w *writer) resolveOne(ctx context.Context, e *entry) (in bool, err error) {
	r, err := w.st.read(ctx, e.seq)
	switch {
	case err == nil && r.epoch == e.epoch && r.owner == e.owner && r.sum == e.sum:
		return true, nil
	case err == nil:
		return false, fmt.Errorf("%w: message %d is of epoch %d and owner %s", errRival, e.seq, r.epoch, r.owner)
	case !errors.Is(err, errNoMessage):
		return false, err
	}
	select { // an answer to an earlier attempt says nothing of this one
	case a := <-e.answer:
		if a.err == nil && a.seq == e.seq {
			return true, nil
		}
	default:
	}
	w.mu.Lock()
	w.sendLocked(e)
	w.mu.Unlock()
	timer := time.NewTimer(ackTimeout)
	defer timer.Stop()
	select {
	case a := <-e.answer:
		return a.err == nil && a.seq == e.seq, a.err
	case <-timer.C:
		return false, errors.New("log did not answer")
	case <-w.lost:
		return false, errRival
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
