package quota

import (
	"context"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
)

// Cluster has the quotas of one running cluster. Its own limits apply in addition to
// those of its organization. A nil Cluster has no limits.
type Cluster struct {
	organization *Organization
	name         string
	limits       atomic.Pointer[Limits]
	count        atomic.Pointer[func(Resource) int64]
	pendingBytes atomic.Int64 // bytes of pending writes, as in Organization
	memory       atomic.Int64 // limit of pendingBytes; 0 for none
	requests     rate
	bytes        rate
	reserved     Limits      // protected by Organization.mu
	state        clientState // protected by Organization.mu
}

// Open adds a running cluster to the organization; Close removes it.
func (o *Organization) Open(name string, limits Limits) *Cluster {
	if o == nil {
		return nil
	}
	c := &Cluster{organization: o, name: name}
	c.Change(limits)
	o.open(c)
	return c
}

// Close removes the cluster from its organization.
func (c *Cluster) Close() {
	if c != nil {
		c.organization.close(c)
	}
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Limits returns the cluster's own limits.
func (c *Cluster) Limits() Limits { return *c.limits.Load() }

// Clusters lists the running clusters.
func (o *Organization) Clusters() []*Cluster { return *o.clusters.Load() }

// Change changes the limits.
func (c *Cluster) Change(limits Limits) {
	if c == nil {
		return
	}
	c.limits.Store(&limits)
	c.requests.limit.Store(limits[RequestsPerSecond])
	c.bytes.limit.Store(limits[BytesPerSecond])
}

// SetCounter sets the function that returns how much of a resource the cluster has. count is
// called for every message, so it must be fast.
func (c *Cluster) SetCounter(count func(Resource) int64) {
	if c != nil {
		c.count.Store(&count)
	}
}

// Used returns how much of a resource the cluster has.
func (c *Cluster) Used(r Resource) int64 {
	switch r {
	case RequestsPerSecond:
		return c.requests.used(c.organization.now())
	case BytesPerSecond:
		return c.bytes.used(c.organization.now())
	case ClientStateBytes, TenantStateBytes, AccountStateBytes:
		return c.usedState(r)
	}
	if count := c.count.Load(); count != nil {
		return (*count)(r)
	}
	return 0
}

// Reservation is a reserved amount of a resource that is about to be created. The zero
// value reserves nothing.
type Reservation struct {
	c *Cluster
	r Resource
	n int64
}

// Reserve reserves n more of a resource. The caller must call Done when they are created,
// and so counted, or when they will not be created. If other reservations are pending and
// the result depends on them, Reserve waits until one of them is done. So the result does
// not depend on timing.
func (c *Cluster) Reserve(ctx context.Context, r Resource, n int64) (Reservation, error) {
	if c == nil || n <= 0 {
		return Reservation{}, nil
	}
	o := c.organization
	for {
		wait, err := c.tryReserve(r, n)
		if err != nil {
			return Reservation{}, err
		}
		if wait == nil {
			return Reservation{c, r, n}, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			o.rejections[r].Add(1)
			return Reservation{}, ctx.Err()
		}
	}
}

// tryReserve reserves, rejects, or returns a channel to wait for.
func (c *Cluster) tryReserve(r Resource, n int64) (wait <-chan struct{}, err error) {
	o := c.organization
	o.mu.Lock()
	defer o.mu.Unlock()
	full := false
	if limit := c.Limits()[r]; limit > 0 {
		used := c.Used(r)
		if used+n > limit {
			o.rejections[r].Add(1)
			return nil, exhausted("cluster "+c.name, r, used, n, limit, true)
		}
		full = used+c.reserved[r]+n > limit
	}
	if limit := o.Limits()[r]; limit > 0 {
		used := o.Used(r)
		if used+n > limit {
			return nil, o.reject(r, used, n, limit)
		}
		full = full || used+o.reserved[r]+n > limit
	}
	if full {
		return o.released, nil
	}
	c.reserved[r] += n
	o.reserved[r] += n
	return nil, nil
}

// Release ends the reservation.
func (v Reservation) Release() {
	if v.c == nil {
		return
	}
	o := v.c.organization
	o.mu.Lock()
	defer o.mu.Unlock()
	v.c.reserved[v.r] -= v.n
	o.reserved[v.r] -= v.n
	close(o.released)
	o.released = make(chan struct{})
}

// SetMemory sets the limit of the bytes of messages that are being stored; 0 for no limit.
func (c *Cluster) SetMemory(limit int64) {
	if c != nil {
		c.memory.Store(limit)
	}
}

// ReserveBytes reserves n bytes of messages. The caller must call Stored when they are stored or
// will not be stored. Unlike Reserve it never waits: pending bytes count as stored.
func (c *Cluster) ReserveBytes(n int64) error {
	if c == nil {
		return nil
	}
	o := c.organization
	own, all := c.pendingBytes.Add(n), o.pendingBytes.Add(n)
	if limit := c.memory.Load(); limit > 0 && own > limit {
		c.ReleaseBytes(n)
		return errs.Newf(errs.Unavailable, "%w: cluster %s is storing %d bytes and its "+
			"spec.broker.resources.memory is %d; try again", ErrBuffersFull, c.name, own-n, limit)
	}
	if limit := c.limits.Load()[StoredBytes]; limit > 0 && own+c.Used(StoredBytes) > limit {
		c.ReleaseBytes(n)
		o.rejections[StoredBytes].Add(1)
		return exhausted("cluster "+c.name, StoredBytes, c.Used(StoredBytes), n, limit, true)
	}
	if limit := o.limits.Load()[StoredBytes]; limit > 0 && all+o.Used(StoredBytes) > limit {
		c.ReleaseBytes(n)
		return o.reject(StoredBytes, o.Used(StoredBytes), n, limit)
	}
	return nil
}

// ReleaseBytes ends a reservation of Store.
func (c *Cluster) ReleaseBytes(n int64) {
	if c != nil {
		c.pendingBytes.Add(-n)
		c.organization.pendingBytes.Add(-n)
	}
}

// Admit admits one more request, or returns a *Throttled.
func (c *Cluster) Admit() error {
	if c == nil {
		return nil
	}
	at := c.organization.now()
	if wait := c.bytes.debt(at); wait > 0 {
		c.organization.rejections[BytesPerSecond].Add(1)
		return throttled("cluster "+c.name, BytesPerSecond, c.bytes.limit.Load(), wait)
	}
	if wait := c.requests.take(at, 1); wait > 0 {
		c.organization.rejections[RequestsPerSecond].Add(1)
		return throttled("cluster "+c.name, RequestsPerSecond, c.requests.limit.Load(), wait)
	}
	return c.organization.admit(at)
}

// Charge counts bytes of a request or a response.
func (c *Cluster) Charge(n int64) {
	if c == nil {
		return
	}
	if c.bytes.limit.Load() > 0 {
		c.bytes.spend(c.organization.now(), n)
	}
	c.organization.Charge(n)
}

// Delay counts a served request and its bytes, and returns how long the client must wait
// before its next request. It is for protocols that delay clients instead of rejecting
// requests.
func (c *Cluster) Delay(bytes int64) time.Duration {
	if c == nil {
		return 0
	}
	c.Charge(bytes)
	o, at := c.organization, c.organization.now()
	c.requests.spend(at, 1)
	o.requests.spend(at, 1)
	byBytes, byRequests := max(c.bytes.debt(at), o.bytes.debt(at)), max(c.requests.debt(at), o.requests.debt(at))
	switch {
	case byBytes > 0 && byBytes >= byRequests:
		o.rejections[BytesPerSecond].Add(1)
	case byRequests > 0:
		o.rejections[RequestsPerSecond].Add(1)
	}
	return max(byBytes, byRequests)
}

// Pause returns how long a stream must wait before it sends more.
func (c *Cluster) Pause() time.Duration {
	if c == nil {
		return 0
	}
	at := c.organization.now()
	return max(c.bytes.debt(at), c.organization.bytes.debt(at))
}
