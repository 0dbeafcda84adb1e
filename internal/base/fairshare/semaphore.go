package fairshare

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// Caller is a principal of an organization. The zero value stands for all unauthenticated callers,
// or for the server itself.
type Caller struct {
	Organization, Principal string
	// Connection identifies a connection of the principal; 0 stands for all of them together.
	Connection uint64
}

// Semaphore is a weighted semaphore that divides its units fairly among organizations, within an
// organization among its principals, and within a principal among its connections. Waiters are served in
// this order: those that hold the least first, then those that were served least recently.
//
// Unless Options.NoReserve is set, some units always remain for the next caller: one organization
// gets at most three quarters of the units that the others do not hold, and one principal at most
// three quarters of the units that its organization may hold and its other principals do not. The same
// applies to a connection within its principal, unless Caller.Connection is 0. The share of an
// organization, principal or connection does not limit its first acquisition.
type Semaphore struct {
	capacity   int64
	maxWaiting int
	noReserve  bool
	maxHeld    int64 // of one organization

	mu            sync.Mutex // protects all fields below
	used          int64
	served        uint64 // number of acquisitions
	waiting       int    // number of waiters
	organizations map[string]*organizationUsage
}

// Options change the policy of a Semaphore.
type Options struct {
	// MaxWaiting is how many calls of one principal may wait; 0 means 1000.
	MaxWaiting int
	// NoReserve lets one caller hold all units while nobody else waits. It suits units that are
	// held for a short time only.
	NoReserve bool
	// MaxHeld is how many units one organization may hold, beyond its first acquisition; 0 means no such limit.
	MaxHeld int64
}

// Errors of Acquire, besides that of the context.
var (
	// ErrTimeout means that the units did not become free in time.
	ErrTimeout = errors.New("units did not become free in time")
	// ErrQueueFull means that too many calls of the principal wait already.
	ErrQueueFull = errors.New("principal has too many waiting calls")
)

// NoTimeout lets Acquire wait until the context ends.
const NoTimeout time.Duration = math.MaxInt64

type (
	organizationUsage struct {
		usage
		principals map[string]*principalUsage
	}
	principalUsage struct {
		usage
		extending   []*waiter // callers of Extend, served before all other waiters of the principal
		connections map[uint64]*connectionUsage
	}
	connectionUsage struct {
		usage
		queue []*waiter
	}
	usage struct {
		held    int64
		served  uint64 // value of Semaphore.served at its last acquisition
		waiting int
	}
	// holder is a caller's usage at each level.
	holder struct {
		organization *organizationUsage
		principal    *principalUsage
		connection   *connectionUsage
		limited      bool // the share of the connection applies
	}
	waiter struct {
		holder
		n       int64
		extends bool
		granted chan struct{} // closed when the waiter has its units
	}
)

const (
	// maxIdle is the number of organizations, and of principals of one organization, above
	// which those that hold nothing are removed.
	maxIdle = 64
	// defaultMaxWaiting is the default of Options.MaxWaiting.
	defaultMaxWaiting = 1000
)

// New returns a semaphore with this many units.
func New(capacity int64, o Options) *Semaphore {
	if o.MaxWaiting == 0 {
		o.MaxWaiting = defaultMaxWaiting
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = capacity
	}
	return &Semaphore{
		capacity: capacity, maxWaiting: o.MaxWaiting, noReserve: o.NoReserve, maxHeld: o.MaxHeld,
		organizations: map[string]*organizationUsage{},
	}
}

// Capacity returns the number of units.
func (s *Semaphore) Capacity() int64 { return s.capacity }

// Used returns the number of units that callers hold.
func (s *Semaphore) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// MaxWaiting returns how many calls of one principal may wait.
func (s *Semaphore) MaxWaiting() int { return s.maxWaiting }

// SoloShare returns how many units a connection gets while nobody else holds any.
func (s *Semaphore) SoloShare() int64 {
	return threeQuarters(threeQuarters(threeQuarters(s.capacity)))
}

// Acquire acquires n units, or all units if n is more, and returns the acquired number, which the
// caller must Release. It waits for them up to the timeout: 0 does not wait. It returns
// ErrTimeout, ErrQueueFull or the error of the context if it acquired nothing.
func (s *Semaphore) Acquire(ctx context.Context, caller Caller, n int64, timeout time.Duration) (int64, error) {
	return s.acquire(ctx, caller, n, false, timeout)
}

// Extend is Acquire for a caller that holds units already and needs more before it can release any. The
// share of the connection does not limit it, and other waiters of the principal wait behind it: so the
// units that become free complete what has begun. Two callers that extend may still wait for each other, so
// the timeout should be finite.
func (s *Semaphore) Extend(ctx context.Context, caller Caller, n int64, timeout time.Duration) (int64, error) {
	return s.acquire(ctx, caller, n, true, timeout)
}

func (s *Semaphore) acquire(ctx context.Context, caller Caller, n int64, extends bool,
	timeout time.Duration,
) (int64, error) {
	n = min(n, s.capacity)
	w, err := s.acquireOrQueue(caller, n, extends, timeout > 0)
	if err != nil {
		return 0, err
	}
	if w == nil {
		return n, nil
	}
	var expired <-chan time.Time // never without a timeout
	if timeout != NoTimeout {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-w.granted:
		return n, nil
	case <-expired:
		err = ErrTimeout
	case <-ctx.Done():
		err = ctx.Err()
	}
	if s.cancel(caller, w) {
		return 0, err
	}
	return n, nil // the units were assigned just before the end
}

// Release returns n units.
func (s *Semaphore) Release(caller Caller, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.findLocked(caller)
	s.used -= n
	h.organization.held -= n
	h.principal.held -= n
	h.connection.held -= n
	s.removeIdleLocked(caller, h)
	s.grantLocked()
}

// acquireOrQueue acquires n units and returns nil, or returns a queued waiter for them if the call
// may wait.
func (s *Semaphore) acquireOrQueue(caller Caller, n int64, extends, wait bool) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := waiter{holder: s.findLocked(caller), n: n, extends: extends}
	if s.waiting == 0 {
		if fits, _ := s.fitsLocked(&w); fits {
			s.takeLocked(w.holder, n)
			return nil, nil
		}
		if !wait {
			s.removeIdleLocked(caller, w.holder)
			return nil, ErrTimeout
		}
	}
	if w.principal.waiting >= s.maxWaiting {
		return nil, ErrQueueFull
	}
	queued := w // only a waiter is allocated
	queued.granted = make(chan struct{})
	s.enqueueLocked(&queued)
	s.grantLocked()
	select {
	case <-queued.granted:
		return nil, nil
	default:
	}
	if !wait {
		s.dequeueLocked(caller, &queued)
		return nil, ErrTimeout
	}
	return &queued, nil
}

// cancel removes a waiter. It returns false if the waiter has got its units meanwhile.
func (s *Semaphore) cancel(caller Caller, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.granted:
		return false
	default:
	}
	s.dequeueLocked(caller, w)
	s.grantLocked() // the waiter may have blocked others behind it
	return true
}

// The methods below are called with mu held.

func (s *Semaphore) findLocked(caller Caller) holder {
	g, ok := s.organizations[caller.Organization]
	if !ok {
		g = &organizationUsage{principals: map[string]*principalUsage{}}
		s.organizations[caller.Organization] = g
	}
	m, ok := g.principals[caller.Principal]
	if !ok {
		m = &principalUsage{connections: map[uint64]*connectionUsage{}}
		g.principals[caller.Principal] = m
	}
	c, ok := m.connections[caller.Connection]
	if !ok {
		c = &connectionUsage{}
		m.connections[caller.Connection] = c
	}
	return holder{g, m, c, caller.Connection != 0}
}

// removeIdleLocked removes a connection, a principal and an organization that hold nothing and do not
// wait. Up to maxIdle of each stay, because most call again.
func (s *Semaphore) removeIdleLocked(caller Caller, h holder) {
	if h.connection.held == 0 && h.connection.waiting == 0 && len(h.principal.connections) > maxIdle {
		delete(h.principal.connections, caller.Connection)
	}
	if h.principal.held == 0 && h.principal.waiting == 0 && len(h.organization.principals) > maxIdle {
		delete(h.organization.principals, caller.Principal)
	}
	if h.organization.held == 0 && h.organization.waiting == 0 && len(s.organizations) > maxIdle {
		delete(s.organizations, caller.Organization)
	}
}

func (s *Semaphore) countWaitersLocked(h holder, by int) {
	s.waiting += by
	h.organization.waiting += by
	h.principal.waiting += by
	h.connection.waiting += by
}

// queueOf returns the queue in which a waiter waits.
func queueOf(w *waiter) *[]*waiter {
	if w.extends {
		return &w.principal.extending
	}
	return &w.connection.queue
}

func (s *Semaphore) enqueueLocked(w *waiter) {
	queue := queueOf(w)
	*queue = append(*queue, w)
	s.countWaitersLocked(w.holder, 1)
}

func (s *Semaphore) dequeueLocked(caller Caller, w *waiter) {
	queue := queueOf(w)
	if i := slices.Index(*queue, w); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
		s.countWaitersLocked(w.holder, -1)
	}
	s.removeIdleLocked(caller, w.holder)
}

func (s *Semaphore) takeLocked(h holder, n int64) {
	s.used += n
	s.served++
	for _, u := range [...]*usage{&h.organization.usage, &h.principal.usage, &h.connection.usage} {
		u.held += n
		u.served = s.served
	}
}

// fitsLocked reports whether a waiter may have its units now. available is false if its share
// would allow them but too few units are free.
func (s *Semaphore) fitsLocked(w *waiter) (fits, available bool) {
	available = s.used+w.n <= s.capacity
	if s.noReserve {
		return available, available
	}
	g, m, c := w.organization, w.principal, w.connection
	organizationShare := min(threeQuarters(s.capacity-(s.used-g.held)), s.maxHeld)
	principalShare := threeQuarters(organizationShare - (g.held - m.held))
	within := (g.held == 0 || g.held+w.n <= organizationShare) && (m.held == 0 || m.held+w.n <= principalShare)
	if w.limited && !w.extends && c.held > 0 {
		within = within && c.held+w.n <= threeQuarters(principalShare-(m.held-c.held))
	}
	return available && within, available || !within
}

func threeQuarters(of int64) int64 { return of/4*3 + of%4*3/4 }

// grantLocked assigns free units to waiters. If the next waiter needs more units than are free,
// those behind it must wait too, so that it does not starve.
func (s *Semaphore) grantLocked() {
	for s.waiting > 0 {
		w := s.nextLocked()
		if w == nil {
			return
		}
		queue := queueOf(w)
		(*queue)[0] = nil
		*queue = (*queue)[1:]
		s.countWaitersLocked(w.holder, -1)
		s.takeLocked(w.holder, w.n)
		close(w.granted)
	}
}

// nextLocked returns the waiter to serve next, nil if no waiter can be served.
func (s *Semaphore) nextLocked() *waiter {
	var next *organizationUsage
	var best *principalUsage
	var found *waiter
	blocked := false
	for _, o := range s.organizations {
		if o.waiting == 0 || next != nil && !o.before(&next.usage) {
			continue
		}
		for _, p := range o.principals {
			if p.waiting == 0 || next == o && !p.before(&best.usage) {
				continue
			}
			w, fits := s.nextOfLocked(p)
			if w == nil {
				continue // the principal, or each of its waiting connections, already holds its share
			}
			next, best, found, blocked = o, p, w, !fits
		}
	}
	if blocked {
		return nil
	}
	return found
}

// nextOfLocked returns the waiter of a principal to serve next, and whether its units are free. It returns nil
// if their shares allow none of the waiters more.
func (s *Semaphore) nextOfLocked(p *principalUsage) (next *waiter, fits bool) {
	if len(p.extending) > 0 {
		w := p.extending[0]
		fits, available := s.fitsLocked(w)
		if !fits && available {
			return nil, false
		}
		return w, fits
	}
	for _, c := range p.connections {
		if len(c.queue) == 0 || next != nil && !c.before(&next.connection.usage) {
			continue
		}
		w := c.queue[0]
		if enough, available := s.fitsLocked(w); enough || !available {
			next, fits = w, enough
		}
	}
	return next, fits
}

// before reports whether a is served before b.
func (a *usage) before(b *usage) bool {
	return a.held < b.held || a.held == b.held && a.served < b.served
}
