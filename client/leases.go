package client

import (
	"context"
	"errors"
	"time"
)

// extend keeps the leases of held messages until the loop has ended.
func (r *receiver) extend() {
	every := max(r.o.Lease/6, 100*time.Millisecond)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.settles.Done():
			return
		}
		due := r.due(time.Now().Add(every))
		for len(due) > 0 {
			n := min(len(due), MaxBatch)
			r.extendAll(due[:n], r.o.Lease/3)
			due = due[n:]
		}
	}
}

// due returns the messages whose lease should be extended now: those that would
// have less than half of it at the next look, so that an attempt can fail twice.
// It gives up on those that were held too long or whose lease has ended.
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

// loseLocked takes a message for lost.
func (r *receiver) loseLocked(d *Delivery) {
	if _, held := r.held[d]; !held {
		return
	}
	d.over = true
	delete(r.held, d)
	close(d.lost)
	signal(r.room)
}

// extendAll extends leases by one call. Where one has ended the server refuses
// the call: the halves are tried, until it is known which one.
func (r *receiver) extendAll(list []*Delivery, within time.Duration) {
	list = r.stillHeld(list)
	if len(list) == 0 {
		return
	}
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.ID
	}
	ctx, cancel := context.WithTimeout(r.settles, within)
	defer cancel()
	asked := time.Now()
	err := r.s.Extend(ctx, r.o.Lease, ids...)
	refused := errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid)
	switch {
	case err == nil:
		r.mu.Lock()
		for _, d := range list {
			d.until = asked.Add(r.o.Lease)
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
	// After any other error the next look tries again, as long as the lease lasts.
}

// stillHeld drops messages that were settled meanwhile.
func (r *receiver) stillHeld(list []*Delivery) []*Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var held []*Delivery
	for _, d := range list {
		if _, ok := r.held[d]; ok {
			held = append(held, d)
		}
	}
	return held
}
