// Package unpacking owns the memory budget for unpacked record batches. A small compressed batch can
// decompress to 64 MiB, so every part of the process that decompresses one reserves the memory here
// first. The budget is divided fairly among organizations and their principals.
//
// Three quarters of the budget are for batches that are being unpacked (Do). One quarter is for
// caches of unpacked messages (CacheBytes), which evict entries instead of waiting.
//
// The package does not decompress: broker/records does that. It does not cache: storage/pebble does.
// Bodies of HTTP requests have a budget of their own (base/web).
//
// A call never waits while it holds a part of the budget, so calls cannot block each other forever:
// a call that needs more than it has reserved, and cannot get it at once, gives everything back,
// waits for the larger amount, and starts again. The package has no locks; package fairshare orders
// the waiting calls.
package unpacking

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/fairshare"
)

// DefaultBytes is the size of a budget when nothing else is configured.
const DefaultBytes = 128 << 20

// ErrBusy means that the memory to unpack a batch did not become free in time. The caller may retry.
var ErrBusy = errs.New(errs.Unavailable, "server is busy unpacking compressed record batches; retry in a moment")

// waitTimeout is how long a call waits for memory.
const waitTimeout = 20 * time.Second

// Budget is the memory for unpacked batches. A process has one. It is safe for concurrent use.
type Budget struct {
	working *fairshare.Semaphore
	cache   int64

	cached    atomic.Int64 // bytes in caches
	opened    atomic.Int64 // batches whose unpacking began
	restarted atomic.Int64 // calls that gave their memory back to wait for more
	rejected  atomic.Int64 // calls that returned ErrBusy
}

// Stats is the state of a Budget.
type Stats struct {
	WorkingLimit, CacheLimit int64 // in bytes
	Working, Cached          int64 // in bytes
	// Opened counts how often unpacking of a batch began, Restarted how often it began again
	// because memory was short, and Rejected the calls that got no memory in time.
	Opened, Restarted, Rejected int64
}

// New returns a budget of this many bytes.
func New(bytes int64) *Budget {
	cache := bytes / 4
	return &Budget{working: fairshare.New(max(bytes-cache, 1), fairshare.Options{}), cache: cache}
}

// CacheBytes is the part of the budget for caches of unpacked messages.
func (b *Budget) CacheBytes() int64 { return b.cache }

// AddCached changes the number of bytes in caches, for Stats.
func (b *Budget) AddCached(bytes int64) { b.cached.Add(bytes) }

// CountOpened records that unpacking of a batch began at its first record.
func (b *Budget) CountOpened() { b.opened.Add(1) }

// Stats returns the state of the budget.
func (b *Budget) Stats() Stats {
	return Stats{
		WorkingLimit: b.working.Capacity(), CacheLimit: b.cache,
		Working: b.working.Used(), Cached: b.cached.Load(),
		Opened: b.opened.Load(), Restarted: b.restarted.Load(), Rejected: b.rejected.Load(),
	}
}

// Reservation is the part of the budget that a call of Do holds.
type Reservation struct {
	budget *Budget
	caller fairshare.Caller
	held   int64
}

// Do reserves bytes for the caller of the context, and calls pass, which unpacks a batch. pass
// calls Reservation.Grow before it uses more memory, and returns the error of Grow. Then Do
// releases the reservation, waits for the larger amount and calls pass again, so pass must have no
// effect before it succeeds. Do returns ErrBusy if the memory does not become free in time, and
// the error of the context if that ends first.
func (b *Budget) Do(ctx context.Context, bytes int64, pass func(*Reservation) error) error {
	for {
		r, err := b.reserve(ctx, bytes)
		if err != nil {
			return err
		}
		err = r.run(pass)
		var short *shortError
		if !errors.As(err, &short) {
			return err
		}
		b.restarted.Add(1)
		bytes = max(short.bytes, 2*bytes)
	}
}

func (b *Budget) reserve(ctx context.Context, bytes int64) (*Reservation, error) {
	caller := fairshare.CallerOf(ctx)
	held, err := b.working.Acquire(ctx, caller, bytes, waitTimeout)
	switch {
	case err == nil:
		return &Reservation{budget: b, caller: caller, held: held}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	b.rejected.Add(1)
	return nil, ErrBusy
}

// run calls pass and releases the reservation, also when pass panics.
func (r *Reservation) run(pass func(*Reservation) error) error {
	defer func() { r.budget.working.Release(r.caller, r.held) }()
	return pass(r)
}

// Grow makes the reservation at least total bytes. It does not wait: it fails when the bytes are not
// free. A reservation of the whole budget grows without limit, because a batch that is larger than
// the budget can only be unpacked alone.
func (r *Reservation) Grow(total int64) error {
	if total <= r.held || r.held >= r.budget.working.Capacity() {
		return nil
	}
	more, err := r.budget.working.Acquire(context.Background(), r.caller, total-r.held, 0)
	if err != nil {
		return &shortError{total}
	}
	r.held += more
	return nil
}

// shortError is the error of Grow.
type shortError struct{ bytes int64 }

func (e *shortError) Error() string {
	return fmt.Sprintf("%d bytes of memory to unpack a batch are not free", e.bytes)
}

// IsShort reports whether err is the error of Reservation.Grow.
func IsShort(err error) bool {
	var short *shortError
	return errors.As(err, &short)
}
