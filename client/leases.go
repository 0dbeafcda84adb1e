package client

import (
	"context"
	"errors"
	"slices"
	"time"
)

// extend extends the leases of held messages until the receiver is closed.
func (r *receiver) extend() {
	every := max(r.o.Lease/6, 100*time.Millisecond)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.settleCtx.Done():
			return
		}
		for due := range slices.Chunk(r.due(time.Now().Add(every)), MaxBatch) {
			r.extendAll(due, r.o.Lease/3)
		}
	}
}

// due returns the messages whose lease must be extended now: those with less than half of
// their lease left at the next check, so that two attempts can fail. Messages that were held
// too long, or whose lease has expired, become lost.
func (r *receiver) due(next time.Time) []*Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var due []*Delivery
	for d := range r.held {
		switch {
		case now.After(d.until) || now.Sub(d.arrived) >= r.o.MaxExtension:
			r.loseLocked(d)
		case d.until.Sub(next) < r.o.Lease/2:
			due = append(due, d)
		}
	}
	return due
}

// loseLocked marks a message as lost.
func (r *receiver) loseLocked(d *Delivery) {
	if _, held := r.held[d]; !held {
		return
	}
	d.ended = true
	delete(r.held, d)
	close(d.lost)
	signal(r.freed)
}

// extendAll extends leases with one call. If one lease has expired the server rejects the whole
// call, so extendAll then splits the list in halves until it finds the expired leases.
func (r *receiver) extendAll(list []*Delivery, within time.Duration) {
	list = r.stillHeld(list)
	if len(list) == 0 {
		return
	}
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.ID
	}
	ctx, cancel := context.WithTimeout(r.settleCtx, within)
	defer cancel()
	requestedAt := time.Now()
	err := r.s.Extend(ctx, r.o.Lease, ids...)
	refused := errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid)
	switch {
	case err == nil:
		r.mu.Lock()
		for _, d := range list {
			d.until = requestedAt.Add(r.o.Lease)
		}
		r.mu.Unlock()
	case refused && len(list) > 1:
		half := len(list) / 2
		r.extendAll(list[:half], within)
		r.extendAll(list[half:], within)
	case refused:
		r.mu.Lock()
		r.loseLocked(list[0])
		r.mu.Unlock()
	}
	// After any other error extend retries until the lease expires.
}

// stillHeld returns the messages that are not settled.
func (r *receiver) stillHeld(list []*Delivery) []*Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(list), func(d *Delivery) bool { _, ok := r.held[d]; return !ok })
}
