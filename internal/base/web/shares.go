package web

import (
	"context"
	"sync"
	"time"
)

// Caller is who something is shared with: a principal of an organization. The
// zero value is all who did not say who they are.
type Caller struct{ Organization, Principal string }

// Shares divides a number of things of one kind fairly among organizations, and
// within each among its principals. One organization gets at most three quarters
// of what the others leave, one principal at most three quarters of what the
// others leave to its organization: there is always something left for whoever
// comes next. Who has nothing yet gets something whenever there is anything. Those
// who wait are served in the order of who holds least, and then of who was served
// longest ago.
type Shares struct {
	most int64

	mu      sync.Mutex // guards everything below
	used    int64
	served  uint64 // how often something was given
	waiting int    // how many wait
	groups  map[string]*group
}

// group is an organization that holds something or waits, member one of its
// principals.
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
		served  uint64 // when it was given something last
		waiting int
	}
	waiter struct {
		n     int64
		given chan struct{} // closed when it has what it waits for
	}
)

// keepIdle is how many are remembered that hold nothing.
const keepIdle = 64

// maxWaiting is how many calls of one principal may wait for the same thing.
const maxWaiting = 1000

// NewShares makes shares of so many things.
func NewShares(most int64) *Shares { return &Shares{most: most, groups: map[string]*group{}} }

// Most is how many things there are.
func (s *Shares) Most() int64 { return s.most }

// Acquire takes n things and waits for them as long as it may; at most all there
// are are taken, and it returns how many. ok is false when they did not become
// free in time, or the context ended.
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
	return n, true // it came at the last moment
}

// Release gives n things back.
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

// atOnce is what all who need not wait are told by.
var atOnce = func() *waiter {
	w := &waiter{given: make(chan struct{})}
	close(w.given)
	return w
}()

// ask takes n things, or has the caller wait; nil when it may not.
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

// giveUp ends waiting; false when the things came meanwhile.
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
	s.give() // others may have waited behind it
	return true
}

// What follows is called with mu held.

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

// forget drops who holds nothing. A few are kept, since most come again.
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

// fits says whether a member may take n things, and whether nothing but what
// others hold is in the way.
func (s *Shares) fits(g *group, m *member, n int64) (fits, enough bool) {
	enough = s.used+n <= s.most
	ours := share(s.most - (s.used - g.held))
	mine := share(ours - (g.held - m.held))
	within := (g.held == 0 || g.held+n <= ours) && (m.held == 0 || m.held+n <= mine)
	return enough && within, enough || !within
}

func share(of int64) int64 { return of/4*3 + of%4*3/4 }

// give serves those who wait, as far as there is something for them. Whoever is
// next and needs more than is free keeps those behind from taking it.
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

// next finds whose turn it is; nil when nobody can be served.
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
				continue // it has its share
			}
			group, best, blocked = g, m, !fits
		}
	}
	if blocked {
		return nil, nil
	}
	return group, best
}

// before says whether one is served before another.
func (a *account) before(b *account) bool {
	return a.held < b.held || a.held == b.held && a.served < b.served
}
