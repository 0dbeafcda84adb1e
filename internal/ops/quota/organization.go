package quota

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Organizations has the quotas of all organizations.
type Organizations struct {
	mu        sync.Mutex // protects defaults and own
	defaults  Limits
	overrides map[string]Limits // limits of single organizations

	organizations sync.Map // name → *Organization
}

// New returns a Book. defaults are the limits of every organization; own overrides them
// for single organizations.
func New(defaults Limits, own map[string]Limits) *Organizations {
	return &Organizations{defaults: defaults, overrides: own}
}

// Change changes the limits. Resources that exceed the new limits stay.
func (b *Organizations) Change(defaults Limits, own map[string]Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.defaults, b.overrides = defaults, own
	b.organizations.Range(func(_, value any) bool {
		o := value.(*Organization)
		o.change(b.limitsOfLocked(o.name))
		return true
	})
}

func (b *Organizations) limitsOfLocked(name string) Limits {
	return b.defaults.withOverrides(b.overrides[name])
}

// Organization returns the quotas of an organization; a nil book has none.
func (b *Organizations) Organization(name string) *Organization {
	if b == nil {
		return nil
	}
	if o, ok := b.organizations.Load(name); ok {
		return o.(*Organization)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o := &Organization{name: name, started: time.Now(), released: make(chan struct{})}
	for i := range o.createSemaphores {
		o.createSemaphores[i] = make(chan struct{}, 1)
	}
	o.clusters.Store(&[]*Cluster{})
	o.change(b.limitsOfLocked(name))
	known, _ := b.organizations.LoadOrStore(name, o)
	return known.(*Organization)
}

// Each calls visit for every organization that was used since the process started.
func (b *Organizations) Each(visit func(*Organization)) {
	b.organizations.Range(func(_, value any) bool {
		visit(value.(*Organization))
		return true
	})
}

// Organization has the quotas of one organization.
type Organization struct {
	name             string
	started          time.Time // origin of the rates' clock, which is monotonic
	limits           atomic.Pointer[Limits]
	clusters         atomic.Pointer[[]*Cluster] // copied on write
	rejections       [Count]atomic.Int64
	pendingBytes     atomic.Int64 // bytes of pending writes
	requests         rate
	bytes            rate
	createSemaphores [Topics]chan struct{} // semaphores, held while a cluster or an instance is created

	mu       sync.Mutex    // protects reserved, settled, Cluster.reserved, Cluster.state and writes to clusters
	reserved Limits        // reserved but not created yet
	released chan struct{} // closed and replaced when a reservation ends
}

// Name returns the organization's name.
func (o *Organization) Name() string { return o.name }

func (o *Organization) now() int64 { return int64(time.Since(o.started)) }

// Limits returns the limits in force.
func (o *Organization) Limits() Limits { return *o.limits.Load() }

// Rejections returns how often each limit has rejected a call.
func (o *Organization) Rejections() (n Limits) {
	for r := range o.rejections {
		n[r] = o.rejections[r].Load()
	}
	return n
}

func (o *Organization) change(limits Limits) {
	o.limits.Store(&limits)
	o.requests.limit.Store(limits[RequestsPerSecond])
	o.bytes.limit.Store(limits[BytesPerSecond])
}

// Used returns how much of a resource the clusters have together, or how much of a rate
// was used in the last second. It counts running clusters only, and returns 0 for
// instances. Of the state of tenants and accounts it returns the largest.
func (o *Organization) Used(r Resource) (n int64) {
	switch r {
	case Clusters:
		return int64(len(*o.clusters.Load()))
	case RequestsPerSecond:
		return o.requests.used(o.now())
	case BytesPerSecond:
		return o.bytes.used(o.now())
	}
	for _, c := range *o.clusters.Load() {
		if r == TenantStateBytes || r == AccountStateBytes {
			n = max(n, c.Used(r))
			continue
		}
		n += c.Used(r)
	}
	return n
}

// Create lets one caller at a time create a cluster or an instance, if count returns less
// than the limit. The caller must call done when it is created or will not be created.
func (o *Organization) Create(ctx context.Context, r Resource,
	count func(context.Context) (int64, error),
) (done func(), err error) {
	if o == nil || o.Limits()[r] == 0 {
		return func() {}, nil
	}
	select {
	case o.createSemaphores[r] <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func() { <-o.createSemaphores[r] }
	used, err := count(ctx)
	if limit := o.Limits()[r]; err == nil && limit > 0 && used >= limit {
		err = o.reject(r, used, 1, limit)
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func (o *Organization) reject(r Resource, used, requested, limit int64) error {
	o.rejections[r].Add(1)
	return exhausted("organization "+o.name, r, used, requested, limit, false)
}

// Admit admits one more request, or returns a *Throttled.
func (o *Organization) Admit() error {
	if o == nil {
		return nil
	}
	return o.admit(o.now())
}

func (o *Organization) admit(at int64) error {
	if wait := o.bytes.debt(at); wait > 0 {
		o.rejections[BytesPerSecond].Add(1)
		return throttled("organization "+o.name, BytesPerSecond, o.bytes.limit.Load(), wait)
	}
	if wait := o.requests.take(at, 1); wait > 0 {
		o.rejections[RequestsPerSecond].Add(1)
		return throttled("organization "+o.name, RequestsPerSecond, o.requests.limit.Load(), wait)
	}
	return nil
}

// Charge counts bytes of a request or a response.
func (o *Organization) Charge(n int64) {
	if o != nil && o.bytes.limit.Load() > 0 {
		o.bytes.spend(o.now(), n)
	}
}

// open adds a cluster; close removes it.
func (o *Organization) open(c *Cluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := append(slices.Clone(*o.clusters.Load()), c)
	o.clusters.Store(&next)
}

func (o *Organization) close(c *Cluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(*o.clusters.Load()), func(other *Cluster) bool { return other == c })
	o.clusters.Store(&next)
}
