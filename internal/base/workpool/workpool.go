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

// Caller identifies for whom work is done. The zero value is the server itself.
type Caller struct{ Organization, Principal string }

type callerKey struct{}

// WithCaller returns a context with which work is done for s.
func WithCaller(ctx context.Context, s Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, s)
}

func callerOf(ctx context.Context) Caller {
	s, _ := ctx.Value(callerKey{}).(Caller)
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
	p.lanes[Small] = lane{free: 2 * cores, maxWaiting: 256}
	p.lanes[Large] = lane{free: max(1, cores/2), maxWaiting: 32}
	p.lanes[Huge] = lane{free: 1, maxWaiting: 8}
	p.lanes[Payloads] = lane{free: max(1, cores/2), maxWaiting: 32}
	return p
}

// lane has the permits of one class of work and the calls that wait for one. Pool.mu protects it,
// and the callers of its methods and of those of shareNode hold it.
type lane struct {
	free       int       // available permits
	maxWaiting int       // maximum number of waiting calls per principal
	grants     uint64    // number of permits granted so far
	root       shareNode // the root, whose children are the organizations
}

// shareNode is a node of the fair queue: an organization with its principals, or a principal with its
// waiting calls.
type shareNode struct {
	running, waiting int
	served           uint64 // the turn in which it got its last permit
	children         map[string]*shareNode
	queue            []*waiter // only of a principal
}

type waiter struct {
	caller  Caller
	granted chan struct{}
}

// childLocked returns the child with a name, which it creates if necessary.
func (p *shareNode) childLocked(name string) *shareNode {
	if p.children == nil {
		p.children = map[string]*shareNode{}
	}
	if p.children[name] == nil {
		p.children[name] = &shareNode{}
	}
	return p.children[name]
}

// nextLocked returns the waiting child with the fewest permits; among equals the one whose last permit
// is the oldest.
func (p *shareNode) nextLocked() *shareNode {
	var found *shareNode
	for _, q := range p.children {
		if q.waiting > 0 && (found == nil || q.running < found.running ||
			q.running == found.running && q.served < found.served) {
			found = q
		}
	}
	return found
}

// countLocked adds to the running and waiting calls of a caller, and removes nodes without any.
func (l *lane) countLocked(s Caller, running, waiting int) {
	org := l.root.childLocked(s.Organization)
	one := org.childLocked(s.Principal)
	for _, p := range [...]*shareNode{org, one} {
		p.running += running
		p.waiting += waiting
		if running > 0 {
			p.served = l.grants
		}
	}
	if one.running == 0 && one.waiting == 0 {
		delete(org.children, s.Principal)
	}
	if org.running == 0 && org.waiting == 0 {
		delete(l.root.children, s.Organization)
	}
}

// grantLocked grants an available permit to the next waiting call.
func (l *lane) grantLocked() {
	org := l.root.nextLocked()
	if org == nil || l.free == 0 {
		return
	}
	one := org.nextLocked()
	w := one.queue[0]
	one.queue = one.queue[1:]
	l.takeLocked(w.caller, -1)
	close(w.granted)
}

func (l *lane) takeLocked(s Caller, waiting int) {
	l.free--
	l.grants++
	l.countLocked(s, 1, waiting)
}

// acquire waits for a permit of a lane.
func (p *Pool) acquire(ctx context.Context, at Lane, s Caller) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	l := &p.lanes[at]
	if l.free > 0 { // then no call waits: release would have granted it the permit
		l.takeLocked(s, 0)
		p.mu.Unlock()
		return nil
	}
	l.countLocked(s, 0, 1)
	one := l.root.childLocked(s.Organization).childLocked(s.Principal)
	if one.waiting > l.maxWaiting {
		l.countLocked(s, 0, -1)
		p.mu.Unlock()
		return errs.Newf(errs.Unavailable, "%w: %d of your checks are waiting already; send fewer concurrently, "+
			"or try again later", ErrBusy, l.maxWaiting)
	}
	w := &waiter{caller: s, granted: make(chan struct{})}
	one.queue = append(one.queue, w)
	p.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		p.cancelWait(at, w)
		return ctx.Err()
	}
}

// cancelWait removes a waiter whose call has ended, or releases the permit that it got at the same
// moment.
func (p *Pool) cancelWait(at Lane, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.lanes[at]
	one := l.root.childLocked(w.caller.Organization).childLocked(w.caller.Principal)
	for i, other := range one.queue {
		if other == w {
			one.queue = append(one.queue[:i:i], one.queue[i+1:]...)
			l.countLocked(w.caller, 0, -1)
			return
		}
	}
	l.releaseLocked(w.caller)
}

// release releases a permit.
func (p *Pool) release(at Lane, s Caller) {
	p.mu.Lock()
	p.lanes[at].releaseLocked(s)
	p.mu.Unlock()
}

func (l *lane) releaseLocked(s Caller) {
	l.free++
	l.countLocked(s, -1, 0)
	l.grantLocked()
}
