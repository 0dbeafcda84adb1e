package web

import (
	"context"
	"sync"
	"time"
)

// Caller is a principal of an organization. The zero value stands for all
// unauthenticated callers.
type Caller struct{ Organization, Principal string }

// Shares is a weighted semaphore that divides its units fairly among organizations, and
// within an organization among its principals. One organization gets at most three
// quarters of the units that the others do not hold. One principal gets at most three
// quarters of the units that its organization may hold and its other principals do not.
// So some units always remain for the next caller. The share of an organization or
// principal does not limit its first acquisition. Waiters are served in this order: those
// that hold the least first, then those that were served least recently.
type Shares struct {
	most int64

	mu      sync.Mutex // protects all fields below
	used    int64
	served  uint64 // number of acquisitions
	waiting int    // number of waiters
	groups  map[string]*group
}

// group is an organization that holds units or waits for some. member is a principal of
// it.
type (
	group struct {
		account
		members map[string]*member
	}
	member struct {
		account
		queue []*waiter
	}
	account struct {
		held    int64
		served  uint64 // value of Shares.served at its last acquisition
		waiting int
	}
	waiter struct {
		n     int64
		given chan struct{} // closed when the waiter has its units
	}
)

// keepIdle is the number of organizations, and of principals of one organization, above
// which those that hold nothing are removed.
const keepIdle = 64

// maxWaiting is how many calls of one principal may wait.
const maxWaiting = 1000

// NewShares returns a semaphore with this many units.
func NewShares(most int64) *Shares { return &Shares{most: most, groups: map[string]*group{}} }

// Most returns the number of units.
func (s *Shares) Most() int64 { return s.most }

// Acquire acquires n units, or all units if n is more, and returns the acquired number.
// It waits up to wait for them. ok is false if they did not become free in time or the
// context ended.
func (s *Shares) Acquire(ctx context.Context, who Caller, n int64, wait time.Duration) (taken int64, ok bool) {
	n = min(n, s.most)
	w := s.ask(who, n, wait > 0)
	if w == nil {
		return 0, false
	}
	select {
	case <-w.given:
		return n, true
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.given:
		return n, true
	case <-timer.C:
	case <-ctx.Done():
	}
	if s.giveUp(who, w) {
		return 0, false
	}
	return n, true // the units were assigned just before the timeout
}

// Release returns n units.
func (s *Shares) Release(who Caller, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m := s.find(who)
	s.used -= n
	g.held -= n
	m.held -= n
	s.forget(who, g, m)
	s.give()
}

// atOnce is the waiter of all calls that got their units without waiting.
var atOnce = func() *waiter {
	w := &waiter{given: make(chan struct{})}
	close(w.given)
	return w
}()

// ask acquires n units or queues a waiter for them. It returns nil if the call must not
// wait, or if too many calls of the principal already wait.
func (s *Shares) ask(who Caller, n int64, mayWait bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m := s.find(who)
	if fits, _ := s.fits(g, m, n); fits && s.waiting == 0 {
		s.take(g, m, n)
		return atOnce
	}
	w := &waiter{n: n, given: make(chan struct{})}
	if m.waiting >= maxWaiting {
		return nil
	}
	m.queue = append(m.queue, w)
	s.count(g, m, 1)
	s.give()
	select {
	case <-w.given:
	default:
		if !mayWait {
			s.leave(who, g, m, w)
			return nil
		}
	}
	return w
}

// giveUp removes a waiter. It returns false if the waiter has got its units meanwhile.
func (s *Shares) giveUp(who Caller, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.given:
		return false
	default:
	}
	g, m := s.find(who)
	s.leave(who, g, m, w)
	s.give() // the waiter may have blocked others behind it
	return true
}

// The methods below are called with mu held.

func (s *Shares) find(who Caller) (*group, *member) {
	g, ok := s.groups[who.Organization]
	if !ok {
		g = &group{members: map[string]*member{}}
		s.groups[who.Organization] = g
	}
	m, ok := g.members[who.Principal]
	if !ok {
		m = &member{}
		g.members[who.Principal] = m
	}
	return g, m
}

// forget removes a principal and an organization that hold nothing and do not wait. Up
// to keepIdle of them stay, because most call again.
func (s *Shares) forget(who Caller, g *group, m *member) {
	if m.held == 0 && m.waiting == 0 && len(g.members) > keepIdle {
		delete(g.members, who.Principal)
	}
	if g.held == 0 && g.waiting == 0 && len(s.groups) > keepIdle {
		delete(s.groups, who.Organization)
	}
}

func (s *Shares) count(g *group, m *member, by int) {
	s.waiting += by
	g.waiting += by
	m.waiting += by
}

func (s *Shares) leave(who Caller, g *group, m *member, w *waiter) {
	for i, other := range m.queue {
		if other == w {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			s.count(g, m, -1)
			break
		}
	}
	s.forget(who, g, m)
}

func (s *Shares) take(g *group, m *member, n int64) {
	s.used += n
	g.held += n
	m.held += n
	s.served++
	g.served, m.served = s.served, s.served
}

// fits reports whether a member may acquire n units now. enough is false if its share
// would allow them but too few units are free.
func (s *Shares) fits(g *group, m *member, n int64) (fits, enough bool) {
	enough = s.used+n <= s.most
	ours := share(s.most - (s.used - g.held))
	mine := share(ours - (g.held - m.held))
	within := (g.held == 0 || g.held+n <= ours) && (m.held == 0 || m.held+n <= mine)
	return enough && within, enough || !within
}

func share(of int64) int64 { return of/4*3 + of%4*3/4 }

// give assigns free units to waiters. If the next waiter needs more units than are free,
// those behind it must wait too, so that it does not starve.
func (s *Shares) give() {
	for s.waiting > 0 {
		g, m := s.next()
		if m == nil {
			return
		}
		w := m.queue[0]
		m.queue = m.queue[1:]
		s.count(g, m, -1)
		s.take(g, m, w.n)
		close(w.given)
	}
}

// next returns the member to serve next, nil if no waiter can be served.
func (s *Shares) next() (*group, *member) {
	var group *group
	var best *member
	blocked := false
	for _, g := range s.groups {
		if g.waiting == 0 || group != nil && !g.before(&group.account) {
			continue
		}
		for _, m := range g.members {
			if m.waiting == 0 || group == g && !m.before(&best.account) {
				continue
			}
			fits, enough := s.fits(g, m, m.queue[0].n)
			if !fits && enough {
				continue // the member already holds its share
			}
			group, best, blocked = g, m, !fits
		}
	}
	if blocked {
		return nil, nil
	}
	return group, best
}

// before reports whether a is served before b.
func (a *account) before(b *account) bool {
	return a.held < b.held || a.held == b.held && a.served < b.served
}
