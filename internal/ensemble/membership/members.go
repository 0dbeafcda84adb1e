// Package membership implements a server's membership in an ensemble: its lease, the list of
// live members, the election of the member that runs the controllers (lead.go), confirmation
// of a change by all members (confirm.go), and the HTTP connections between members
// (network.go, pool.go) with the port that they lead to (port.go). It does not know what the
// members do; package ensemble composes them.
//
// The state is in etcd, under one prefix:
//
//	live/<name>      a member with a valid lease: its Record, bound to that lease
//	leaving/<lease>  a lease that was revoked because its member did not respond. The
//	                 member has certainly noticed when this key has expired.
//	controller       the member that runs the controllers, bound to its lease
//	started          the first start of the ensemble is done
//
// # The lease
//
// A member may serve clients while its lease is valid by its own clocks: from the moment it
// sent the renewal request that etcd granted, for the lease's time to live less a margin. So
// the member has stopped serving before etcd expires the lease and other members act on
// that. Two clocks count: the monotonic clock, which never jumps, and the wall clock, which
// advances while a machine is suspended.
//
// A member that has lost its lease acquires a new one, catches up (Options.State), and
// only then is alive again.
//
// # Locks
//
//	Ensemble.mu    self, session, live and changed. Never held over a call of etcd.
//	pool.mu        the connections and the state of one pool. Never held over a network
//	               call.
//	pool.inFlight  semaphore channel: the requests in flight of one pool. Acquired without
//	               blocking; a request that finds the pool full uses HTTP/2.
//
// Ensemble.mu and pool.mu are leaf locks and never held together. Alive reads the deadlines
// without a lock; they are atomic. Invariants: changed is closed and replaced with every
// change of live and session; the deadlines are extended only by the goroutine that renews
// the lease, and only after State.CatchUp has succeeded under that lease; pool.watch runs while
// pool.open is not empty.
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
	"freshet/internal/base/retry"
)

// Record is what a member publishes about itself.
type Record struct {
	Name string `json:"name"`
	// Node is its number: its index in the list of members, from 1 on.
	Node int `json:"node"`
	// Internal is the address for calls between members.
	Internal string `json:"internal"`
	// HTTP, HTTPS, Stream and StreamTLS are the addresses for clients; "" for none.
	HTTP      string    `json:"http,omitempty"`
	HTTPS     string    `json:"https,omitempty"`
	Stream    string    `json:"stream,omitempty"`
	StreamTLS string    `json:"streamTLS,omitempty"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Ready     bool      `json:"ready"`
	// Members are the names of all members in the order of this member's configuration. Members of
	// earlier versions do not publish them.
	Members []string `json:"members,omitempty"`

	// Lease is the lease that the record is bound to.
	Lease clientv3.LeaseID `json:"-"`
}

// State is what a member has read of the state that the members share. It is stale after the
// member was without a lease.
type State interface {
	// CatchUp brings the state up to date. It runs under a new lease and is retried until it
	// succeeds.
	CatchUp(ctx context.Context) error
}

// Prober calls other members.
type Prober interface {
	// Probe calls another member and returns an error if that member does not respond.
	Probe(ctx context.Context, member string) error
}

// Options configures a member. All but TTL, State and Prober are required.
type Options struct {
	Etcd   *clientv3.Client
	Prefix string // of the keys, without a trailing slash
	Self   Record
	// TTL is the lease's time to live without a renewal; 0 means 5 s.
	TTL time.Duration
	// State catches up after the member was without a lease. With nil, the member is up to
	// date without that.
	State State
	// Prober calls the other members. When a connection is refused repeatedly, that member
	// loses its lease immediately, so that the others need not wait for its expiry. With
	// nil, members are not probed.
	Prober Prober
	Log    *slog.Logger
}

const (
	defaultTTL = 5 * time.Second
	// leaseFraction divides the time to live into the renewal interval, which is also the safety
	// margin.
	leaseFraction = 5
	// callTimeout bounds one call of etcd.
	callTimeout   = 2 * time.Second
	retryInterval = 200 * time.Millisecond
)

// errNoLease is returned by calls that need a lease.
var errNoLease = errs.New(errs.Unavailable, "this member has no lease in its ensemble at the moment; try again shortly")

// Ensemble is a member's view of its ensemble.
type Ensemble struct {
	opts      Options
	ttl       time.Duration
	clockBase time.Time // deadline is relative to it

	deadline     atomic.Int64 // end of the lease by the monotonic clock, in ns since clockBase
	wallDeadline atomic.Int64 // end of the lease by the wall clock, in ns of Unix time
	retired      atomic.Bool  // a lost lease is not replaced

	mu      sync.Mutex
	self    Record               // protected by mu, as are the following fields
	session *concurrency.Session // nil without a lease
	live    map[string]Record
	changed chan struct{} // closed at the next change of live or session

	cancel     context.CancelFunc
	goroutines sync.WaitGroup
}

// Open acquires a lease and returns when it is valid and the live members are known.
func Open(ctx context.Context, opts Options) (*Ensemble, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &Ensemble{
		opts: opts, ttl: cmp.Or(opts.TTL, defaultTTL), clockBase: time.Now(), self: opts.Self,
		live: map[string]Record{}, changed: make(chan struct{}), cancel: cancel,
	}
	g.goroutines.Go(func() { g.holdLease(running) })
	g.goroutines.Go(func() { g.watchMembers(running) })
	if opts.Prober != nil {
		g.goroutines.Go(func() { g.probeMembers(running) })
	}
	for !g.Alive() || !g.isLive(opts.Self.Name) {
		if err := g.Changed(ctx); err != nil {
			g.Close()
			return nil, fmt.Errorf("acquiring a lease in the ensemble: %w", err)
		}
	}
	return g, nil
}

// Alive reports whether this member's lease is valid, so that it may serve clients.
func (g *Ensemble) Alive() bool {
	return time.Since(g.clockBase) < time.Duration(g.deadline.Load()) && time.Now().UnixNano() < g.wallDeadline.Load()
}

// Session returns the session of the member's lease, or nil without one. After the loss of
// a lease there is a new session.
func (g *Ensemble) Session() *concurrency.Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session
}

// Live returns the members with valid leases that this member knows of, by name.
func (g *Ensemble) Live() []Record {
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
func (g *Ensemble) Find(name string) (Record, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	record, ok := g.live[name]
	return record, ok
}

// Changed returns at the next change of the lease or of the live members, after retryInterval,
// or with an error when the context ends. A caller can miss a change between two calls, so
// it must check its condition after every return.
func (g *Ensemble) Changed(ctx context.Context) error {
	g.mu.Lock()
	changed := g.changed
	g.mu.Unlock()
	return retry.Wait(ctx, changed, retryInterval)
}

func (g *Ensemble) isLive(name string) bool {
	_, ok := g.Find(name)
	return ok
}

// change calls edit with mu held and wakes the callers of Changed.
func (g *Ensemble) change(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
	close(g.changed)
	g.changed = make(chan struct{})
}

// SetReady publishes whether this member serves clients.
func (g *Ensemble) SetReady(ctx context.Context, ready bool) error {
	g.mu.Lock()
	g.self.Ready = ready
	session := g.session
	g.mu.Unlock()
	if session == nil {
		return errNoLease // the next lease publishes it
	}
	return g.publish(ctx, session.Lease())
}

func (g *Ensemble) publish(ctx context.Context, lease clientv3.LeaseID) error {
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

func (g *Ensemble) key(name string) string { return g.opts.Prefix + "/" + name }

// Retire announces that this member is about to leave: it does not replace a lease that it
// loses from now on, for example because its listener is closed.
func (g *Ensemble) Retire() { g.retired.Store(true) }

// Close revokes the lease, so that other members need not wait for its expiry. Call it once.
func (g *Ensemble) Close() {
	g.cancel()
	g.goroutines.Wait()
	g.expire()
	session := g.Session()
	if session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	session.Orphan()
	if _, err := g.opts.Etcd.Revoke(ctx, session.Lease()); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		g.opts.Log.Warn("revoking the lease of this member failed; it expires automatically",
			slog.Any("error", err))
	}
}
