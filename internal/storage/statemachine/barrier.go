package statemachine

import (
	"context"
	"sync"
)

// barriers shares read barriers between callers: at most one is in flight, and calls during it
// wait for the next one, which starts after them. mu protects the other fields.
type barriers struct {
	mu      sync.Mutex
	running bool
	next    *barrierCall
}

type barrierCall struct {
	done chan struct{}
	err  error
}

// Fresh returns a state that includes every record that was durable when Fresh was called, from
// any replica.
func (m *Machine[S]) Fresh(ctx context.Context) (S, error) {
	if err := m.await(ctx); err != nil {
		var none S
		return none, err
	}
	return m.View(), nil
}

func (m *Machine[S]) await(ctx context.Context) error {
	b := &m.barrier
	b.mu.Lock()
	if !b.running {
		// No other barrier runs: no goroutine and no channel are needed. On an engine
		// that has its last position in memory this is very cheap.
		b.running = true
		b.mu.Unlock()
		err := m.runBarrier(ctx)
		b.mu.Lock()
		if next := m.nextBarrierLocked(); next != nil {
			go m.serveBarriers(next)
		}
		b.mu.Unlock()
		return err
	}
	if b.next == nil {
		b.next = &barrierCall{done: make(chan struct{})}
	}
	call := b.next
	b.mu.Unlock()
	select {
	case <-call.done:
		return call.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serveBarriers runs barriers until no call waits for one.
func (m *Machine[S]) serveBarriers(call *barrierCall) {
	for call != nil {
		call.err = m.runBarrier(m.ctx)
		close(call.done)
		m.barrier.mu.Lock()
		call = m.nextBarrierLocked()
		m.barrier.mu.Unlock()
	}
}

// nextBarrierLocked returns the waiting call, or records that no barrier runs. The caller holds
// barriers.mu.
func (m *Machine[S]) nextBarrierLocked() *barrierCall {
	next := m.barrier.next
	m.barrier.next = nil
	m.barrier.running = next != nil
	return next
}

// runBarrier reads the journal's last position and applies the records up to it.
func (m *Machine[S]) runBarrier(ctx context.Context) error {
	if err := m.Health(); err != nil {
		return err
	}
	last, err := m.journal.Last(ctx)
	if err != nil {
		return err
	}
	if m.current.Load().position >= last {
		return nil
	}
	if err := m.lockWriting(ctx); err != nil {
		return err
	}
	defer m.unlockWriting()
	if m.current.Load().position >= last {
		return nil
	}
	return m.catchUpLocked(ctx)
}
