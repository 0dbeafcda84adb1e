package web

import (
	"context"
	"sync"
	"time"
)

// Caller is a principal of an organization. The zero value stands for all
// unauthenticated callers.
type Caller struct{ Organization, Principal string }

// FairSemaphore is a weighted semaphore that divides its units fairly among organizations, and
// within an organization among its principals. One organization gets at most three
// quarters of the units that the others do not hold. One principal gets at most three
// quarters of the units that its organization may hold and its other principals do not.
// So some units always remain for the next caller. The share of an organization or
// principal does not limit its first acquisition. Waiters are served in this order: those
// that hold the least first, then those that were served least recently.
type FairSemaphore struct {
	capacity int64

	mu            sync.Mutex // protects all fields below
	used          int64
	served        uint64 // number of acquisitions
	waiting       int    // number of waiters
	organizations map[string]*organizationUsage
}

// group is an organization that holds units or waits for some. member is a principal of
// it.
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
		served  uint64 // value of FairSemaphore.served at its last acquisition
		waiting int
	}
	waiter struct {
		n       int64
		granted chan struct{} // closed when the waiter has its units
	}
)

// maxIdle is the number of organizations, and of principals of one organization, above
// which those that hold nothing are removed.
const maxIdle = 64

// maxWaiting is how many calls of one principal may wait.
const maxWaiting = 1000

// NewFairSemaphore returns a semaphore with this many units.
func NewFairSemaphore(
	limit int64,
) *FairSemaphore {
	return &FairSemaphore{capacity: limit, organizations: map[string]*organizationUsage{}}
}

// Capacity returns the number of units.
func (s *FairSemaphore) Capacity() int64 { return s.capacity }

// Acquire acquires n units, or all units if n is more, and returns the acquired number.
// It waits up to wait for them. ok is false if they did not become free in time or the
// context ended.
func (s *FairSemaphore) Acquire(ctx context.Context, caller Caller, n int64,
	wait time.Duration,
) (taken int64, ok bool) {
	n = min(n, s.capacity)
	w := s.acquireOrQueue(caller, n, wait > 0)
	if w == nil {
		return 0, false
	}
	select {
	case <-w.granted:
		return n, true
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.granted:
		return n, true
	case <-timer.C:
	case <-ctx.Done():
	}
	if s.cancel(caller, w) {
		return 0, false
	}
	return n, true // the units were assigned just before the timeout
}

// Release returns n units.
func (s *FairSemaphore) Release(caller Caller, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m := s.findLocked(caller)
	s.used -= n
	g.held -= n
	m.held -= n
	s.removeIdleLocked(caller, g, m)
	s.grantLocked()
}

// grantedWaiter is the waiter of all calls that got their units without waiting.
var grantedWaiter = func() *waiter {
	w := &waiter{granted: make(chan struct{})}
	close(w.granted)
	return w
}()

// acquireOrQueue acquires n units or queues a waiter for them. It returns nil if the call must not
// wait, or if too many calls of the principal already wait.
func (s *FairSemaphore) acquireOrQueue(caller Caller, n int64, wait bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m := s.findLocked(caller)
	if fits, _ := s.fitsLocked(g, m, n); fits && s.waiting == 0 {
		s.takeLocked(g, m, n)
		return grantedWaiter
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	if m.waiting >= maxWaiting {
		return nil
	}
	m.queue = append(m.queue, w)
	s.countWaitersLocked(g, m, 1)
	s.grantLocked()
	select {
	case <-w.granted:
	default:
		if !wait {
			s.dequeueLocked(caller, g, m, w)
			return nil
		}
	}
	return w
}

// cancel removes a waiter. It returns false if the waiter has got its units meanwhile.
func (s *FairSemaphore) cancel(caller Caller, w *waiter) bool {
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

func (s *FairSemaphore) findLocked(caller Caller) (*organizationUsage, *principalUsage) {
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
func (s *FairSemaphore) removeIdleLocked(caller Caller, g *organizationUsage, m *principalUsage) {
	if m.held == 0 && m.waiting == 0 && len(g.principals) > maxIdle {
		delete(g.principals, caller.Principal)
	}
	if g.held == 0 && g.waiting == 0 && len(s.organizations) > maxIdle {
		delete(s.organizations, caller.Organization)
	}
}

func (s *FairSemaphore) countWaitersLocked(g *organizationUsage, m *principalUsage, by int) {
	s.waiting += by
	g.waiting += by
	m.waiting += by
}

func (s *FairSemaphore) dequeueLocked(caller Caller, g *organizationUsage, m *principalUsage, w *waiter) {
	for i, other := range m.queue {
		if other == w {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			s.countWaitersLocked(g, m, -1)
			break
		}
	}
	s.removeIdleLocked(caller, g, m)
}

func (s *FairSemaphore) takeLocked(g *organizationUsage, m *principalUsage, n int64) {
	s.used += n
	g.held += n
	m.held += n
	s.served++
	g.served, m.served = s.served, s.served
}

// fitsLocked reports whether a member may acquire n units now. enough is false if its share
// would allow them but too few units are free.
func (s *FairSemaphore) fitsLocked(g *organizationUsage, m *principalUsage, n int64) (fits, available bool) {
	available = s.used+n <= s.capacity
	organizationShare := threeQuarters(s.capacity - (s.used - g.held))
	principalShare := threeQuarters(organizationShare - (g.held - m.held))
	within := (g.held == 0 || g.held+n <= organizationShare) && (m.held == 0 || m.held+n <= principalShare)
	return available && within, available || !within
}

func threeQuarters(of int64) int64 { return of/4*3 + of%4*3/4 }

// grantLocked assigns free units to waiters. If the next waiter needs more units than are free,
// those behind it must wait too, so that it does not starve.
func (s *FairSemaphore) grantLocked() {
	for s.waiting > 0 {
		g, m := s.nextLocked()
		if m == nil {
			return
		}
		w := m.queue[0]
		m.queue = m.queue[1:]
		s.countWaitersLocked(g, m, -1)
		s.takeLocked(g, m, w.n)
		close(w.granted)
	}
}

// nextLocked returns the member to serve next, nil if no waiter can be served.
func (s *FairSemaphore) nextLocked() (*organizationUsage, *principalUsage) {
	var organization *organizationUsage
	var best *principalUsage
	blocked := false
	for _, g := range s.organizations {
		if g.waiting == 0 || organization != nil && !g.before(&organization.usage) {
			continue
		}
		for _, m := range g.principals {
			if m.waiting == 0 || organization == g && !m.before(&best.usage) {
				continue
			}
			fits, available := s.fitsLocked(g, m, m.queue[0].n)
			if !fits && available {
				continue // the member already holds its share
			}
			organization, best, blocked = g, m, !fits
		}
	}
	if blocked {
		return nil, nil
	}
	return organization, best
}

// before reports whether a is served before b.
func (a *usage) before(b *usage) bool {
	return a.held < b.held || a.held == b.held && a.served < b.served
}
