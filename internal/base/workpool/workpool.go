// Package workpool shares out work that costs processor time and memory for
// longer than a request usually does: parsing and comparing schemas, checking
// large payloads. It owns who may work when, how much one call may cost, and
// when it is told that it costs too much; what the work is, its callers know.
//
// Work goes through lanes, each with places of its own, so that small work never
// waits behind large. Within a lane the places go round the organizations that
// wait, and within an organization round its principals: whoever asks for much
// waits for himself. What turns out to cost more than small work may moves to
// the lane of large work in the middle (Job.Spend).
package workpool

import (
	"context"
	"runtime"
	"sync"

	"freshet/internal/base/errs"
)

// ErrBusy is the refusal of a caller who has too much work waiting already, and
// ErrTooCostly of work over a limit.
var (
	ErrBusy      = errs.New(errs.Unavailable, "too many costly checks at once")
	ErrTooCostly = errs.New(errs.Invalid, "too costly")
)

// Lane is a kind of work by what it costs.
type Lane uint8

// The lanes.
const (
	Small    Lane = iota // ends within milliseconds
	Large                // may take as long as a call may
	Huge                 // takes so much memory that one at a time is enough
	Payloads             // large messages that are held against a schema
	laneCount
)

// SmallBytes is how much text small work looks at.
const SmallBytes = 64 << 10

// LaneOf is the lane of work on so many bytes of schemas.
func LaneOf(bytes int) Lane {
	if bytes <= SmallBytes {
		return Small
	}
	return Large
}

// Share is who work is done for. The zero value is the server itself.
type Share struct{ Organization, Principal string }

type shareKey struct{}

// WithShare says for whom what is done with the context is done.
func WithShare(ctx context.Context, s Share) context.Context {
	return context.WithValue(ctx, shareKey{}, s)
}

func shareOf(ctx context.Context) Share {
	s, _ := ctx.Value(shareKey{}).(Share)
	return s
}

// Pool has the places of every lane. Its methods may be called from any number
// of goroutines.
type Pool struct {
	mu    sync.Mutex // guards all below
	lanes [laneCount]lane
}

// New makes a pool for this machine. One for the whole process is right.
func New() *Pool {
	cores := runtime.GOMAXPROCS(0)
	p := &Pool{}
	p.lanes[Small] = lane{free: 2 * cores, most: 256}
	p.lanes[Large] = lane{free: max(1, cores/2), most: 32}
	p.lanes[Huge] = lane{free: 1, most: 8}
	p.lanes[Payloads] = lane{free: max(1, cores/2), most: 32}
	return p
}

// lane has the places for one kind of work and those who wait for one.
type lane struct {
	free  int
	most  int    // how many may wait for one principal
	turns uint64 // how often a place was given
	all   party  // everybody
}

// party is somebody whom the places go round: an organization with its
// principals, or a principal with what waits for it.
type party struct {
	running, waiting int
	served           uint64 // the turn in which it got a place last
	parts            map[string]*party
	queue            []*waiter // of a principal only
}

type waiter struct {
	share   Share
	granted chan struct{}
}

// part returns a part of a party, which is made when it is missing.
func (p *party) part(name string) *party {
	if p.parts == nil {
		p.parts = map[string]*party{}
	}
	if p.parts[name] == nil {
		p.parts[name] = &party{}
	}
	return p.parts[name]
}

// next is the waiting part that has the fewest places, or of several the one
// that got one longest ago.
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

// count adds to what runs and waits for a share, and forgets who has neither.
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

// give hands a free place to whoever is next.
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

// enter waits for a place in a lane.
func (p *Pool) enter(ctx context.Context, at Lane, s Share) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	l := &p.lanes[at]
	if l.free > 0 { // then nobody waits: give would have served them
		l.take(s, 0)
		p.mu.Unlock()
		return nil
	}
	l.count(s, 0, 1)
	one := l.all.part(s.Organization).part(s.Principal)
	if one.waiting > l.most {
		l.count(s, 0, -1)
		p.mu.Unlock()
		return errs.Newf(errs.Unavailable, "%w: %d of yours are waiting for a place already; send fewer at a time, "+
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

// withdraw takes back a waiter who went away, or the place that it was given
// at the same moment.
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

// leave gives a place back.
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
