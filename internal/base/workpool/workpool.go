// Package workpool schedules work that needs more CPU time and memory than a usual request, such
// as parsing and comparing schemas and checking large payloads. It owns the order in which calls
// may work and the limits of one call. It does not know the work itself: registry/schemas and
// broker/messaging provide it.
//
// Work runs in lanes, each with its own concurrency permits, so that small work never waits for
// large work. Within a lane permits are shared fairly between the waiting organizations, and
// within an organization between its principals: a principal with many calls delays only its own
// calls. Work that exceeds the limit of small work moves to the lane of large work while it runs
// (Job.Spend).
//
// Pool.mu is the only lock. It protects the lanes with their queues, and is a leaf. The fields of
// a Job belong to the goroutine that runs its current part; only Job.ended is atomic.
package workpool

import (
	"context"
	"runtime"
	"sync"

	"freshet/internal/base/errs"
)

// ErrBusy means that a principal has too many waiting calls, and ErrTooCostly that work exceeds a
// limit.
var (
	ErrBusy      = errs.New(errs.Unavailable, "too many concurrent costly checks")
	ErrTooCostly = errs.New(errs.Invalid, "check is too costly")
)

// Lane is a class of work by cost.
type Lane uint8

// The lanes.
const (
	Small    Lane = iota // ends within milliseconds
	Large                // may take up to the time limit of a call
	Huge                 // needs so much memory that only one runs at a time
	Payloads             // large messages that are validated against a schema
	laneCount
)

// SmallBytes is the maximum size of the schemas of small work.
const SmallBytes = 64 << 10

// LaneOf returns the lane of work on schemas of a size.
func LaneOf(bytes int) Lane {
	if bytes <= SmallBytes {
		return Small
	}
	return Large
}

// Share identifies for whom work is done. The zero value is the server itself.
type Share struct{ Organization, Principal string }

type shareKey struct{}

// WithShare returns a context with which work is done for s.
func WithShare(ctx context.Context, s Share) context.Context {
	return context.WithValue(ctx, shareKey{}, s)
}

func shareOf(ctx context.Context) Share {
	s, _ := ctx.Value(shareKey{}).(Share)
	return s
}

// Pool has the permits of all lanes. It is safe for concurrent use.
type Pool struct {
	mu    sync.Mutex // protects lanes
	lanes [laneCount]lane
}

// New returns a pool for this machine. A process needs only one.
func New() *Pool {
	cores := runtime.GOMAXPROCS(0)
	p := &Pool{}
	p.lanes[Small] = lane{free: 2 * cores, most: 256}
	p.lanes[Large] = lane{free: max(1, cores/2), most: 32}
	p.lanes[Huge] = lane{free: 1, most: 8}
	p.lanes[Payloads] = lane{free: max(1, cores/2), most: 32}
	return p
}

// lane has the permits of one class of work and the calls that wait for one. Pool.mu protects it,
// and the callers of its methods and of those of shareNode hold it.
type lane struct {
	free  int    // available permits
	most  int    // maximum number of waiting calls per principal
	turns uint64 // number of permits granted so far
	all   party  // the root, whose children are the organizations
}

// party is a node of the fair queue: an organization with its principals, or a principal with its
// waiting calls.
type party struct {
	running, waiting int
	served           uint64 // the turn in which it got its last permit
	parts            map[string]*party
	queue            []*waiter // only of a principal
}

type waiter struct {
	share   Share
	granted chan struct{}
}

// part returns the child with a name, which it creates if necessary.
func (p *party) part(name string) *party {
	if p.parts == nil {
		p.parts = map[string]*party{}
	}
	if p.parts[name] == nil {
		p.parts[name] = &party{}
	}
	return p.parts[name]
}

// next returns the waiting child with the fewest permits; among equals the one whose last permit
// is the oldest.
func (p *party) next() *party {
	var found *party
	for _, q := range p.parts {
		if q.waiting > 0 && (found == nil || q.running < found.running ||
			q.running == found.running && q.served < found.served) {
			found = q
		}
	}
	return found
}

// count adds to the running and waiting calls of a caller, and removes nodes without any.
func (l *lane) count(s Share, running, waiting int) {
	org := l.all.part(s.Organization)
	one := org.part(s.Principal)
	for _, p := range [...]*party{org, one} {
		p.running += running
		p.waiting += waiting
		if running > 0 {
			p.served = l.turns
		}
	}
	if one.running == 0 && one.waiting == 0 {
		delete(org.parts, s.Principal)
	}
	if org.running == 0 && org.waiting == 0 {
		delete(l.all.parts, s.Organization)
	}
}

// give grants an available permit to the next waiting call.
func (l *lane) give() {
	org := l.all.next()
	if org == nil || l.free == 0 {
		return
	}
	one := org.next()
	w := one.queue[0]
	one.queue = one.queue[1:]
	l.take(w.share, -1)
	close(w.granted)
}

func (l *lane) take(s Share, waiting int) {
	l.free--
	l.turns++
	l.count(s, 1, waiting)
}

// enter waits for a permit of a lane.
func (p *Pool) enter(ctx context.Context, at Lane, s Share) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	l := &p.lanes[at]
	if l.free > 0 { // then no call waits: release would have granted it the permit
		l.take(s, 0)
		p.mu.Unlock()
		return nil
	}
	l.count(s, 0, 1)
	one := l.all.part(s.Organization).part(s.Principal)
	if one.waiting > l.most {
		l.count(s, 0, -1)
		p.mu.Unlock()
		return errs.Newf(errs.Unavailable, "%w: %d of your checks are waiting already; send fewer concurrently, "+
			"or try again later", ErrBusy, l.most)
	}
	w := &waiter{share: s, granted: make(chan struct{})}
	one.queue = append(one.queue, w)
	p.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		p.withdraw(at, w)
		return ctx.Err()
	}
}

// withdraw removes a waiter whose call has ended, or releases the permit that it got at the same
// moment.
func (p *Pool) withdraw(at Lane, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.lanes[at]
	one := l.all.part(w.share.Organization).part(w.share.Principal)
	for i, other := range one.queue {
		if other == w {
			one.queue = append(one.queue[:i:i], one.queue[i+1:]...)
			l.count(w.share, 0, -1)
			return
		}
	}
	l.leave(w.share)
}

// leave releases a permit.
func (p *Pool) leave(at Lane, s Share) {
	p.mu.Lock()
	p.lanes[at].leave(s)
	p.mu.Unlock()
}

func (l *lane) leave(s Share) {
	l.free++
	l.count(s, -1, 0)
	l.give()
}
