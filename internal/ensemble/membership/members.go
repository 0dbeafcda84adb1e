// Package membership is a server's place in a group: its lease, who else is there, the
// one member that runs the controllers (lead.go), and the way to have something in
// force on every member before a call is answered (confirm.go).
//
// Everything is in etcd, beneath one prefix:
//
//	live/<name>      a member whose lease is good: Record, under that lease
//	leaving/<lease>  a lease that was taken from a member that did not answer: it may
//	                 not know yet, and does when this key has gone
//	controller       the member that runs the controllers, under its lease
//
// # The lease
//
// A member may serve while its lease is good by its own clock: from the moment it
// asked for the renewal that etcd granted, for the time of the lease less a margin.
// So it has stopped by itself before etcd lets the lease go and anybody else acts on
// that. Both clocks count, the one that never jumps and the one that goes on while a
// machine is suspended.
//
// A member that has lost its lease takes a new one, brings itself up to date
// (Options.CatchUp), and only then is alive again.
//
// # Locks
//
// Group.mu guards the session, the watched records and the waiters. It is held for
// moments and never over a call of etcd. deadline is read without it.
package membership

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/errs"
)

// Record is what a member says of itself to the others.
type Record struct {
	Name string `json:"name"`
	// Node is its number, from 1 on: its place in the list of members.
	Node int `json:"node"`
	// Internal is where members call each other.
	Internal string `json:"internal"`
	// HTTP, HTTPS, Stream and StreamTLS are where clients reach it; "" when they do
	// not.
	HTTP      string    `json:"http,omitempty"`
	HTTPS     string    `json:"https,omitempty"`
	Stream    string    `json:"stream,omitempty"`
	StreamTLS string    `json:"streamTLS,omitempty"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Ready     bool      `json:"ready"`

	// Lease is the one that the record is stored under.
	Lease clientv3.LeaseID `json:"-"`
}

// Options says who a member is. All but TTL, CatchUp and Reach are required.
type Options struct {
	Etcd   *clientv3.Client
	Prefix string // of the keys, without a slash at its end
	Self   Record
	// TTL is how long a lease is good without a sign of life; 5 s when zero.
	TTL time.Duration
	// CatchUp brings the member up to date after it was without a lease. It is
	// called with a new one, and repeated until it succeeds.
	CatchUp func(ctx context.Context) error
	// Reach calls another member. One whose machine says that nobody listens there any
	// more loses its lease at once, so that others need not wait for its end. nil:
	// nobody is called.
	Reach func(ctx context.Context, member string) error
	Log   *slog.Logger
}

const (
	defaultTTL = 5 * time.Second
	// share is the part of the lease's time that is its margin, and after which it
	// is renewed.
	share = 5
	// callTimeout bounds one call of etcd.
	callTimeout = 2 * time.Second
	againAfter  = 200 * time.Millisecond
)

// errNoLease is for what can be done with a lease only.
var errNoLease = errs.New(errs.Unavailable, "this member has no lease in its group at the moment")

// Group is a member's view of its group.
type Group struct {
	opts Options
	ttl  time.Duration
	base time.Time // deadline counts from here

	deadline atomic.Int64 // by the clock that does not jump, in ns since base
	wall     atomic.Int64 // by the other one, in ns of Unix time
	retired  atomic.Bool  // a lost lease is not replaced

	mu      sync.Mutex
	self    Record
	session *concurrency.Session // nil without a lease
	live    map[string]Record
	changed chan struct{} // closed at the next change of live or session

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Open takes a lease and returns when it has one and knows who else is there.
func Open(ctx context.Context, opts Options) (*Group, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &Group{
		opts: opts, ttl: cmp.Or(opts.TTL, defaultTTL), base: time.Now(), self: opts.Self,
		live: map[string]Record{}, changed: make(chan struct{}), cancel: cancel,
	}
	if g.opts.CatchUp == nil {
		g.opts.CatchUp = func(context.Context) error { return nil }
	}
	g.done.Go(func() { g.holdLease(running) })
	g.done.Go(func() { g.follow(running) })
	if opts.Reach != nil {
		g.done.Go(func() { g.lookAfter(running) })
	}
	for !g.Alive() || !g.knows(opts.Self.Name) {
		if err := g.Changed(ctx); err != nil {
			g.Close()
			return nil, fmt.Errorf("taking a lease in the group: %w", err)
		}
	}
	return g, nil
}

// Alive says whether this member's lease is good, and it may answer.
func (g *Group) Alive() bool {
	return time.Since(g.base) < time.Duration(g.deadline.Load()) && time.Now().UnixNano() < g.wall.Load()
}

// Session is the member's lease, for what others do with it; nil when there is none.
// After a loss there is another one.
func (g *Group) Session() *concurrency.Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session
}

// Live lists the members whose leases are good, as far as this one has heard, by
// name.
func (g *Group) Live() []Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]Record, 0, len(g.live))
	for _, record := range g.live {
		list = append(list, record)
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Find returns a live member.
func (g *Group) Find(name string) (Record, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	record, ok := g.live[name]
	return record, ok
}

// Changed returns at the next change of the lease or of the live members, or when
// the context ends. A change may be missed by who was not waiting: ask again every
// now and then.
func (g *Group) Changed(ctx context.Context) error {
	g.mu.Lock()
	changed := g.changed
	g.mu.Unlock()
	timer := time.NewTimer(againAfter)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *Group) knows(name string) bool {
	_, ok := g.Find(name)
	return ok
}

// change edits what mu guards, and wakes who waits for that.
func (g *Group) change(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
	close(g.changed)
	g.changed = make(chan struct{})
}

// SetReady tells the others whether this member serves clients.
func (g *Group) SetReady(ctx context.Context, ready bool) error {
	g.mu.Lock()
	g.self.Ready = ready
	session := g.session
	g.mu.Unlock()
	if session == nil {
		return errNoLease // the next one says it
	}
	return g.publish(ctx, session.Lease())
}

func (g *Group) publish(ctx context.Context, lease clientv3.LeaseID) error {
	g.mu.Lock()
	text, err := json.Marshal(g.self)
	g.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = g.opts.Etcd.Put(ctx, g.key("live/"+g.self.Name), string(text), clientv3.WithLease(lease))
	return err
}

func (g *Group) key(name string) string { return g.opts.Prefix + "/" + name }

// Retire says that this member is about to leave: a lease that it loses from now on, to
// others who find that nobody listens here any more, stays lost.
func (g *Group) Retire() { g.retired.Store(true) }

// Close gives the lease back, so that nobody has to wait for its end. It is called
// once.
func (g *Group) Close() {
	g.cancel()
	g.done.Wait()
	g.expire()
	session := g.Session()
	if session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	session.Orphan()
	if _, err := g.opts.Etcd.Revoke(ctx, session.Lease()); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		g.opts.Log.Warn("the lease of this member could not be given back; it ends by itself",
			slog.String("error", err.Error()))
	}
}
