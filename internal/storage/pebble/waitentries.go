package pebble

import (
	"context"
	"sync"

	"freshet/internal/storage/engine"
)

// watchers are the callers of WaitEntries that wait for a partition. mu protects set.
type watchers struct {
	mu  sync.Mutex
	set map[chan struct{}]struct{}
}

func (w *watchers) add(ch chan struct{}) {
	w.mu.Lock()
	if w.set == nil {
		w.set = make(map[chan struct{}]struct{})
	}
	w.set[ch] = struct{}{}
	w.mu.Unlock()
}

func (w *watchers) remove(ch chan struct{}) {
	w.mu.Lock()
	delete(w.set, ch)
	w.mu.Unlock()
}

func (w *watchers) wake() {
	w.mu.Lock()
	for ch := range w.set {
		select {
		case ch <- struct{}{}:
		default: // woken already
		}
	}
	w.mu.Unlock()
}

// WaitEntries implements engine.Batches.
func (e *Engine) WaitEntries(ctx context.Context, positions []engine.PartitionPosition) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	woken := make(chan struct{}, 1)
	parts := make([]*partition, len(positions))
	defer func() {
		for _, p := range parts {
			if p != nil {
				p.watchers.remove(woken)
				p.topic.release()
			}
		}
	}()
	for i, position := range positions {
		t, err := e.topics.acquire(ctx, position.Topic)
		if err != nil {
			return err
		}
		p, err := t.partition(position.Partition)
		if err != nil {
			t.release()
			return err
		}
		parts[i] = p
		p.watchers.add(woken)
	}
	for {
		for i, p := range parts {
			if p.durable.Load() > positions[i].Entry {
				return nil
			}
			if p.topic.deleted.Load() {
				return engine.ErrNoTopic
			}
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.closing:
			return e.closedCause()
		case <-e.stopped:
			return e.stopCause()
		}
	}
}
