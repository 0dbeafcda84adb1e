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
type Caller struct{ Organization, Principal string }

// Semaphore is a weighted semaphore that divides its units fairly among organizations, and within an
// organization among its principals. Waiters are served in this order: those that hold the least
// first, then those that were served least recently.
//
// Unless Options.NoReserve is set, some units always remain for the next caller: one organization
// gets at most three quarters of the units that the others do not hold, and one principal at most
// three quarters of the units that its organization may hold and its other principals do not. The
// share of an organization or principal does not limit its first acquisition.
type Semaphore struct {
	capacity   int64
	maxWaiting int
	noReserve  bool

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
		queue []*waiter
	}
	usage struct {
		held    int64
		served  uint64 // value of Semaphore.served at its last acquisition
		waiting int
	}
	waiter struct {
		n       int64
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
	return &Semaphore{
		capacity: capacity, maxWaiting: o.MaxWaiting, noReserve: o.NoReserve,
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

// Acquire acquires n units, or all units if n is more, and returns the acquired number, which the
// caller must Release. It waits for them up to the timeout: 0 does not wait. It returns
// ErrTimeout, ErrQueueFull or the error of the context if it acquired nothing.
func (s *Semaphore) Acquire(ctx context.Context, caller Caller, n int64, timeout time.Duration) (int64, error) {
	n = min(n, s.capacity)
	w, err := s.acquireOrQueue(caller, n, timeout > 0)
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
	g, m := s.findLocked(caller)
	s.used -= n
	g.held -= n
	m.held -= n
	s.removeIdleLocked(caller, g, m)
	s.grantLocked()
}

// acquireOrQueue acquires n units and returns nil, or returns a queued waiter for them if the call
// may wait.
func (s *Semaphore) acquireOrQueue(caller Caller, n int64, wait bool) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m := s.findLocked(caller)
	if s.waiting == 0 {
		if fits, _ := s.fitsLocked(g, m, n); fits {
			s.takeLocked(g, m, n)
			return nil, nil
		}
		if !wait {
			s.removeIdleLocked(caller, g, m)
			return nil, ErrTimeout
		}
	}
	if m.waiting >= s.maxWaiting {
		return nil, ErrQueueFull
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	m.queue = append(m.queue, w)
	s.countWaitersLocked(g, m, 1)
	s.grantLocked()
	select {
	case <-w.granted:
		return nil, nil
	default:
	}
	if !wait {
		s.dequeueLocked(caller, g, m, w)
		return nil, ErrTimeout
	}
	return w, nil
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
	g, m := s.findLocked(caller)
	s.dequeueLocked(caller, g, m, w)
	s.grantLocked() // the waiter may have blocked others behind it
	return true
}

// The methods below are called with mu held.

func (s *Semaphore) findLocked(caller Caller) (*organizationUsage, *principalUsage) {
	g, ok := s.organizations[caller.Organization]
	if !ok {
		g = &organizationUsage{principals: map[string]*principalUsage{}}
		s.organizations[caller.Organization] = g
	}
	m, ok := g.principals[caller.Principal]
	if !ok {
		m = &principalUsage{}
		g.principals[caller.Principal] = m
	}
	return g, m
}

// removeIdleLocked removes a principal and an organization that hold nothing and do not wait. Up
// to maxIdle of them stay, because most call again.
func (s *Semaphore) removeIdleLocked(caller Caller, g *organizationUsage, m *principalUsage) {
	if m.held == 0 && m.waiting == 0 && len(g.principals) > maxIdle {
		delete(g.principals, caller.Principal)
	}
	if g.held == 0 && g.waiting == 0 && len(s.organizations) > maxIdle {
		delete(s.organizations, caller.Organization)
	}
}

func (s *Semaphore) countWaitersLocked(g *organizationUsage, m *principalUsage, by int) {
	s.waiting += by
	g.waiting += by
	m.waiting += by
}

func (s *Semaphore) dequeueLocked(caller Caller, g *organizationUsage, m *principalUsage, w *waiter) {
	if i := slices.Index(m.queue, w); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		s.countWaitersLocked(g, m, -1)
	}
	s.removeIdleLocked(caller, g, m)
}

func (s *Semaphore) takeLocked(g *organizationUsage, m *principalUsage, n int64) {
	s.used += n
	g.held += n
	m.held += n
	s.served++
	g.served, m.served = s.served, s.served
}

// fitsLocked reports whether a principal may acquire n units now. available is false if its share
// would allow them but too few units are free.
func (s *Semaphore) fitsLocked(g *organizationUsage, m *principalUsage, n int64) (fits, available bool) {
	available = s.used+n <= s.capacity
	if s.noReserve {
		return available, available
	}
	organizationShare := threeQuarters(s.capacity - (s.used - g.held))
	principalShare := threeQuarters(organizationShare - (g.held - m.held))
	within := (g.held == 0 || g.held+n <= organizationShare) && (m.held == 0 || m.held+n <= principalShare)
	return available && within, available || !within
}

func threeQuarters(of int64) int64 { return of/4*3 + of%4*3/4 }

// grantLocked assigns free units to waiters. If the next waiter needs more units than are free,
// those behind it must wait too, so that it does not starve.
func (s *Semaphore) grantLocked() {
	for s.waiting > 0 {
		g, m := s.nextLocked()
		if m == nil {
			return
		}
		w := m.queue[0]
		m.queue[0] = nil
		m.queue = m.queue[1:]
		s.countWaitersLocked(g, m, -1)
		s.takeLocked(g, m, w.n)
		close(w.granted)
	}
}

// nextLocked returns the principal to serve next, nil if no waiter can be served.
func (s *Semaphore) nextLocked() (*organizationUsage, *principalUsage) {
	var next *organizationUsage
	var best *principalUsage
	blocked := false
	for _, o := range s.organizations {
		if o.waiting == 0 || next != nil && !o.before(&next.usage) {
			continue
		}
		for _, p := range o.principals {
			if p.waiting == 0 || next == o && !p.before(&best.usage) {
				continue
			}
			fits, available := s.fitsLocked(o, p, p.queue[0].n)
			if !fits && available {
				continue // the principal already holds its share
			}
			next, best, blocked = o, p, !fits
		}
	}
	if blocked {
		return nil, nil
	}
	return next, best
}

// before reports whether a is served before b.
func (a *usage) before(b *usage) bool {
	return a.held < b.held || a.held == b.held && a.served < b.served
}
