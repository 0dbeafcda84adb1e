package replica

import (
	"context"
	"sync"
)

// barriers shares read barriers: at most one is in flight, and whoever comes
// while it is waits for the next one, which starts after they came.
type barriers struct {
	mu   sync.Mutex
	busy bool
	next *barrierCall
}

type barrierCall struct {
	done chan struct{}
	err  error
}

// Fresh returns a state that has every record that was durable when it was
// called, whichever replica wrote it.
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
	if !b.busy {
		// Alone: no goroutine, no channel. On an engine that knows its last
		// position by heart this costs next to nothing.
		b.busy = true
		b.mu.Unlock()
		err := m.pass(ctx)
		b.mu.Lock()
		if next := m.handOver(); next != nil {
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

// serveBarriers passes barriers for those who wait until nobody does.
func (m *Machine[S]) serveBarriers(call *barrierCall) {
	for call != nil {
		call.err = m.pass(m.ctx)
		close(call.done)
		m.barrier.mu.Lock()
		call = m.handOver()
		m.barrier.mu.Unlock()
	}
}

// handOver takes the waiting call, or notes that nothing is in flight.
func (m *Machine[S]) handOver() *barrierCall {
	next := m.barrier.next
	m.barrier.next = nil
	m.barrier.busy = next != nil
	return next
}

// pass asks for the journal's last position and applies up to it.
func (m *Machine[S]) pass(ctx context.Context) error {
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
	if err := m.take(ctx); err != nil {
		return err
	}
	defer m.give()
	if m.current.Load().position >= last {
		return nil
	}
	return m.catchUp(ctx)
}
