package kafkaapi

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"freshet/internal/base/fairshare"
	"freshet/internal/identity/access"
)

// room is the memory for the requests and responses of authenticated clients. It is divided fairly by organization,
// principal and connection (docs/adr/0041-room-for-kafka-requests.md).
//
// Invariants:
//
//   - Requests take room from main only. A response takes room from main if that is free at once; otherwise
//     it waits for room in responses. Only responses that are ready to be written hold room in responses, so
//     it becomes free as fast as clients read, or when the deadlines of writing close their connections. So
//     no response waits for a request that waits behind it.
//   - Each organization may hold a little room in spare. So a few organizations that hold all of main, and keep
//     it, do not stop the requests of others of up to firstStep bytes.
//   - A complete request needs no more room in main to be answered. A request takes room only after the responses
//     before it that may wait for other clients are sent.
//   - A frame of up to firstStep bytes takes all of its room at once and holds none while it waits. A larger
//     frame holds room while it waits for more. The claims of a principal's larger frames are together at
//     most what the principal may hold, so they do not wait for each other. Larger frames of several
//     principals may; the timeout of Extend then closes a connection.
//   - Nobody holds a permit of Server.fetchLimiter or Server.describeLimiter while waiting for room.
type room struct {
	main      *fairshare.Semaphore // requests and responses
	responses *fairshare.Semaphore // responses that found no room in main
	spare     *fairshare.Semaphore // small requests and responses that found no room; nobody waits for it
	outsiders *fairshare.Semaphore // requests of principals without a permission

	mu     sync.Mutex // protects claims; a leaf
	claims map[fairshare.Caller]*claims
}

// claims are the announced bytes of the larger frames of a principal that are being received.
type claims struct {
	bytes *semaphore.Weighted
	users int // frames that claim or wait; room.mu protects it
}

const (
	// uncountedBytes is the size of the requests, and of the response, of each connection that take no room:
	// taking it would cost more than the rest of such a request.
	uncountedBytes = 32 << 10
	// firstStep is the size up to which a frame takes its room at once.
	firstStep = 1 << 20
	// controlWeight is the room of a request other than Produce, in multiples of its size: the frame, its
	// decoded form, the rows of the response and their encoded form.
	controlWeight = 4
	// outsiderMemory is the room of all principals without a permission; maxOutsiderFrame bounds their requests.
	outsiderMemory   = 16 << 20
	maxOutsiderFrame = 2 << 20
	// maxControlFrame bounds requests other than Produce.
	maxControlFrame = 16 << 20
)

// unlimitedWaiting is the number of calls of a principal that may wait: the limit on connections bounds them.
const unlimitedWaiting = 1 << 30

// newLimiter returns a limiter with n permits. They are held for a short time only, so one caller may hold all of them.
func newLimiter(n int64) *fairshare.Semaphore {
	return fairshare.New(n, fairshare.Options{MaxWaiting: unlimitedWaiting, NoReserve: true})
}

func newRoom(memory int64) *room {
	divided := fairshare.Options{MaxWaiting: unlimitedWaiting}
	spare := memory / 16
	return &room{
		main: fairshare.New(memory/4*3, divided), responses: fairshare.New(memory/4-spare, divided),
		spare:     fairshare.New(spare, fairshare.Options{MaxHeld: spare / 16}),
		outsiders: fairshare.New(min(outsiderMemory, memory/4), divided),
		claims:    make(map[fairshare.Caller]*claims),
	}
}

// used returns the bytes that requests and responses hold.
func (r *room) used() int64 {
	return r.main.Used() + r.responses.Used() + r.spare.Used() + r.outsiders.Used()
}

// maxHeld returns the room that a principal may hold while nobody else holds any. A frame that is larger is
// counted with this size; the default settings allow no such frame.
func (r *room) maxHeld() int64 { return r.main.Capacity() / 16 * 9 }

// claim reserves n bytes of the principal's claims. The caller must call the returned function when the frame is
// complete.
func (r *room) claim(ctx context.Context, caller fairshare.Caller, n int64) (release func(), err error) {
	caller.Connection = 0
	n = min(n, r.maxHeld())
	r.mu.Lock()
	of := r.claims[caller]
	if of == nil {
		of = &claims{bytes: semaphore.NewWeighted(r.maxHeld())}
		r.claims[caller] = of
	}
	of.users++
	r.mu.Unlock()
	leave := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(r.claims, caller)
		}
	}
	if err := of.bytes.Acquire(ctx, n); err != nil {
		leave()
		return nil, err
	}
	return func() {
		of.bytes.Release(n)
		leave()
	}, nil
}

// reservation is room that a request or a response holds. The zero value holds none.
type reservation struct {
	caller         fairshare.Caller
	pool           *fairshare.Semaphore
	bytes          int64
	uncounted      *atomic.Int64 // the connection's uncounted bytes, if the reservation has some
	uncountedBytes int64
}

// release returns the room. It may be called more than once.
func (r *reservation) release() {
	if r.bytes > 0 {
		r.pool.Release(r.caller, r.bytes)
	}
	if r.uncountedBytes > 0 {
		r.uncounted.Add(-r.uncountedBytes)
	}
	*r = reservation{}
}

// shrink returns the room beyond n bytes.
func (r *reservation) shrink(n int64) {
	if surplus := r.bytes - n; surplus > 0 && n >= 0 {
		r.pool.Release(r.caller, surplus)
		r.bytes = n
	}
}

// extend raises a reservation that holds room to n bytes. It waits up to the timeout.
func (r *reservation) extend(ctx context.Context, n int64, timeout time.Duration) error {
	if n <= r.bytes {
		return nil
	}
	more, err := r.pool.Extend(ctx, r.caller, n-r.bytes, timeout)
	if err != nil {
		return fmt.Errorf("waiting for room for a request, see stream.memory: %w", err)
	}
	r.bytes += more
	return nil
}

// reserveFrame takes n bytes for a frame, from spare if that is enough and the pool has none at the moment. It waits
// for room in the pool.
func (s *Server) reserveFrame(ctx context.Context, pool *fairshare.Semaphore, caller fairshare.Caller,
	n int64,
) (reservation, error) {
	if held, err := reserve(ctx, pool, caller, n, 0); err == nil {
		return held, nil
	}
	if n <= firstStep && n <= s.room.spare.SoloShare() && pool == s.room.main {
		if held, err := reserve(ctx, s.room.spare, caller, n, 0); err == nil {
			return held, nil
		}
	}
	ctx, cancel := s.untilDraining(ctx)
	defer cancel()
	return reserve(ctx, pool, caller, n, fairshare.NoTimeout)
}

// untilDraining returns a context that also ends when the server shuts down: it does not wait then for room to
// read a request.
func (s *Server) untilDraining(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// reserve waits for n bytes of a pool, or for the share of a connection if that is less.
func reserve(ctx context.Context, pool *fairshare.Semaphore, caller fairshare.Caller, n int64,
	timeout time.Duration,
) (reservation, error) {
	held, err := pool.Acquire(ctx, caller, min(n, pool.SoloShare()), timeout)
	if err != nil {
		return reservation{}, err
	}
	return reservation{caller: caller, pool: pool, bytes: held}, nil
}

// caller returns the connection's identity for fair shares.
func (c *conn) caller(s *session) fairshare.Caller {
	return fairshare.Caller{Organization: s.principal.Organization, Principal: s.principal.Name, Connection: c.id}
}

// reserveUncounted reserves n of the connection's uncounted bytes, and reports whether they are free.
func (c *conn) reserveUncounted(n int) (reservation, bool) {
	if c.uncounted.Add(int64(n)) > uncountedBytes {
		c.uncounted.Add(-int64(n))
		return reservation{}, false
	}
	return reservation{uncounted: &c.uncounted, uncountedBytes: int64(n)}, true
}

// responseRoom is the room of a response, which grows while the response is built. The zero value holds none.
type responseRoom struct {
	conn           *conn
	session        *session
	main, reserved reservation // in room.main, and in room.responses or room.spare
	granted        int64       // size for which await has reserved room, which counts at most a connection's share
}

func (r *responseRoom) bytes() int64 { return r.main.bytes + r.reserved.bytes }

func (r *responseRoom) release() {
	r.main.release()
	r.reserved.release()
	r.granted = 0
}

// fit raises the room to n bytes if that is possible without waiting. When more is free, it takes up to twice
// as much, at least a step, and at most limit, so that a growing response takes room a few times only.
func (r *responseRoom) fit(n, limit int64) bool {
	if n <= r.granted {
		return true
	}
	if n -= uncountedBytes; n <= r.bytes() {
		return true
	}
	ample := min(max(n, firstStep, 2*r.bytes()), max(limit-uncountedBytes, n))
	all, caller := r.conn.server.room, r.conn.caller(r.session)
	for _, try := range [...]struct {
		pool *fairshare.Semaphore
		to   *reservation
		n    int64
	}{{all.main, &r.main, ample}, {all.main, &r.main, n}, {all.responses, &r.reserved, n}} {
		more := try.n - r.bytes()
		if more > try.pool.SoloShare() || try.to.bytes > 0 && try.to.pool != try.pool {
			continue
		}
		if _, err := try.pool.Acquire(context.Background(), caller, more, 0); err == nil {
			try.to.caller, try.to.pool = caller, try.pool
			try.to.bytes += more
			return true
		}
	}
	if r.bytes() > 0 || n > firstStep || n > all.spare.SoloShare() {
		return false
	}
	held, err := reserve(context.Background(), all.spare, caller, n, 0)
	r.reserved = held
	return err == nil
}

// await waits for room for a response of n bytes. It holds nothing while it waits.
func (r *responseRoom) await(ctx context.Context, n int64) error {
	r.release()
	if r.fit(n, n) {
		return nil
	}
	var err error
	r.reserved, err = reserve(ctx, r.conn.server.room.responses, r.conn.caller(r.session), n, fairshare.NoTimeout)
	r.granted = n
	return err
}

// shrink returns the room that a response of n bytes does not need.
func (r *responseRoom) shrink(n int64) {
	n = max(n-uncountedBytes, 0)
	if r.reserved.bytes == 0 {
		r.main.shrink(n)
	}
}

// anyPermission are the permissions of which a caller needs any one, on something in the cluster, to send large
// requests.
var anyPermission = []access.Permission{
	permitDescribe, permitConsume, permitProduce, permitCreate, permitUpdate, permitDelete, permitSubscriptions,
	permitDeleteSubscription, permitDescribeCluster, permitListBindings,
}

// hasWithinCluster reports whether the caller has any one of the permissions on something in the cluster. A denial
// is not audited, because the request itself is authorized later.
func (c *call) hasWithinCluster(wanted ...access.Permission) bool {
	scope := c.session.cluster.Scope
	ok, _ := c.decide(decision{}, wanted, func(p access.Permission) (bool, error) {
		filter := c.conn.server.opts.Policy.Filter(c.session.principal, p, scope)
		return !filter.None() || access.GrantedWithin(c.session.cluster.Grants, c.session.principal, p, scope), nil
	})
	return ok
}
