// Package dataplane runs messaging clusters. Each cluster has an engine in a directory of its
// own, with the broker and the schema registry on top. Requests find a cluster by their Host,
// or by organization and name.
//
// The reconciler of the MessagingCluster kind decides what should run, with the types of
// package provision; messageapi, registryapi and kafkaapi serve the clusters. Two clusters
// share the process, the disk, one block cache and one worker pool, and nothing that a user
// could see. In an ensemble a cluster consists of shards (ensemble.go); package
// dataplane/ensemble connects it to the other members.
//
// # Locks
//
//	Plane.mu       one cluster is opened, changed or closed at a time. Held over the
//	               whole operation, which reads disks and the network. Also held while
//	               a closed store is copied.
//	lazyGroups.mu  the consumer group coordinator of one cluster. Held while it is
//	               opened or closed, and while it takes over or gives up a shard.
//	lazyShard.mu   lazyShard.cancel. Never held over a call.
//
// Order: Plane.mu, then lazyGroups.mu. lazyShard.mu is a leaf lock. Requests do not take
// Plane.mu: they look up clusters in an index that is replaced and never changed
// (Plane.running).
//
// Invariants: only a holder of Plane.mu replaces Plane.running. When a shard is lost, its
// lazyShard cancels the goroutine that reconciles the shard and waits for it, so the broker
// and the coordinator do not use an engine after lazyShard.Lost has returned.
package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane/provision"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Options configures a plane.
type Options struct {
	Dir string // contains one directory per cluster, by UID
	// DefaultOrganization and DefaultName select the cluster for hosts that are not the name
	// of a cluster; empty for none.
	DefaultOrganization string
	DefaultName         string
	// Domain is the parent domain of the clusters' host names. A host below it that is not
	// the name of a cluster is not served by the default cluster.
	Domain      string
	CacheBytes  int64 // block cache for all clusters together; 64 MiB when 0
	OpenTables  int   // files that all clusters together keep open to read; 1000 when 0
	DiskReserve int64 // free disk space that messages must not use; the engine's default when 0
	Limits      messaging.Limits
	Restored    Restored             // nil if the data was not restored from a backup
	Quotas      *quota.Organizations // nil: no limits
	// Unpacking is the memory for decompressed batches of all clusters; nil means the default size.
	Unpacking *unpacking.Budget
	Logger    *slog.Logger
}

// Restored is the backup that the data was restored from; restore.FirstStart implements it.
type Restored interface {
	// MayHaveNoStore reports whether a cluster that has run before may have no store: it was
	// created during the backup.
	MayHaveNoStore(uid string) bool
	// IsFirstStart reports whether the store of a cluster was restored and not used since.
	IsFirstStart(uid string) bool
}

const (
	engineName    = "pebble"
	defaultCache  = 64 << 20
	defaultTables = 1000
	deletedSuffix = ".deleted"
	dirPermission = 0o700
)

// ErrNoCluster is returned for a host that names no running cluster, ErrNoSuchName for an
// organization and a name.
var (
	ErrNoCluster  = errs.New(errs.NotFound, "no messaging cluster is served at this host")
	ErrNoSuchName = errs.New(errs.NotFound, "no messaging cluster of this organization has this name")
)

// Plane runs clusters.
type Plane struct {
	opts  Options
	cache *pebble.Cache
	pool  *workpool.Pool // shared by all clusters, because they share the processor
	log   *slog.Logger
	open  openFunc
	// notOpen is the error for the clients of a cluster that could not be opened: engine.ErrNotOpen,
	// or engine.ErrOpening where opening is retried.
	notOpen error

	mu      sync.Mutex // held while a cluster is opened, changed or closed
	closed  bool
	running atomic.Pointer[index]
}

// index is the lookup table of requests. It is replaced and never changed.
type index struct {
	byUID    map[string]*Cluster
	byHost   map[string]*Cluster
	byName   map[name]*Cluster
	failed   map[string]*failedCluster // by UID: clusters that should run and could not be opened
	fallback *Cluster
}

// name is a cluster's name in the resource API.
type name struct{ organization, cluster string }

func newIndex() *index {
	return &index{
		byUID: map[string]*Cluster{}, byHost: map[string]*Cluster{}, byName: map[name]*Cluster{},
		failed: map[string]*failedCluster{},
	}
}

func (d *index) clone() *index {
	return &index{
		byUID: maps.Clone(d.byUID), byHost: maps.Clone(d.byHost), byName: maps.Clone(d.byName),
		failed:   maps.Clone(d.failed),
		fallback: d.fallback,
	}
}

// remove removes a cluster, except for host and name entries that another cluster has taken
// over.
func (d *index) remove(c *Cluster) {
	delete(d.byUID, c.UID)
	if d.byHost[c.Host] == c {
		delete(d.byHost, c.Host)
	}
	if at := (name{c.Organization, c.Name}); d.byName[at] == c {
		delete(d.byName, at)
	}
}

// openFunc opens a cluster from its directory and reports each part that is up. The caller
// holds Plane.mu.
type openFunc func(ctx context.Context, spec provision.Spec, report func(provision.Part)) (*Cluster, error)

// Open creates the plane of a single server, without running clusters, and removes
// directories that an interrupted deletion left. OpenMember creates that of a member.
func Open(opts Options) (*Plane, error) {
	p, err := newPlane(opts)
	if err != nil {
		return nil, err
	}
	p.open, p.notOpen = p.openSingleLocked, engine.ErrNotOpen
	return p, nil
}

func newPlane(opts Options) (*Plane, error) {
	if opts.CacheBytes == 0 {
		opts.CacheBytes = defaultCache
	}
	if opts.OpenTables == 0 {
		opts.OpenTables = defaultTables
	}
	if opts.Unpacking == nil {
		opts.Unpacking = unpacking.New(unpacking.DefaultBytes)
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if err := os.MkdirAll(opts.Dir, dirPermission); err != nil {
		return nil, fmt.Errorf("creating the directory of the clusters: %w", err)
	}
	leftovers, err := filepath.Glob(filepath.Join(opts.Dir, "*"+deletedSuffix))
	if err != nil {
		return nil, fmt.Errorf("listing deleted clusters: %w", err)
	}
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return nil, fmt.Errorf("removing a deleted cluster: %w", err)
		}
	}
	p := &Plane{
		opts: opts, cache: pebble.NewCache(opts.CacheBytes, opts.OpenTables, opts.Unpacking), pool: workpool.New(),
		log: opts.Logger,
	}
	p.running.Store(newIndex())
	return p, nil
}

// Provision opens the cluster, or updates an open one, and reports each part that is up.
// Calling it again with the same spec changes nothing. report runs while no other cluster
// can be opened, so it should return quickly.
func (p *Plane) Provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error {
	if err := p.provisionLocal(ctx, spec, report); err != nil {
		return err
	}
	if c, ok := p.running.Load().byUID[spec.UID]; ok {
		return c.awaitOwners(ctx)
	}
	return nil
}

func (p *Plane) provisionLocal(ctx context.Context, spec provision.Spec, report func(provision.Part)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errs.New(errs.Unavailable, "server is shutting down; try again")
	}
	if spec.Engine != engineName {
		return errs.Newf(errs.Invalid, "engine %q is not built into this server; use %q", spec.Engine, engineName)
	}
	if old, ok := p.running.Load().byUID[spec.UID]; ok {
		if !old.Equal(spec) {
			old.Quota.Change(limitsOf(spec))
			old.Quota.SetMemory(spec.MemoryBytes)
			old.setCopies(spec.Copies)
			p.publishLocked(old.with(spec))
		}
		return old.Health()
	}
	opened, err := p.open(ctx, spec, report)
	if err != nil {
		next := p.running.Load().clone()
		next.failed[spec.UID] = &failedCluster{spec, err, p.notOpen}
		p.running.Store(next)
		return err
	}
	p.publishLocked(opened)
	report(provision.Proxy)
	p.log.Info("cluster is open", slog.String("cluster", spec.Organization+"/"+spec.Name),
		slog.String("host", spec.Host))
	return nil
}

// publishLocked makes a cluster visible to requests. The caller holds mu.
func (p *Plane) publishLocked(c *Cluster) {
	next := p.running.Load().clone()
	delete(next.failed, c.UID)
	if before, ok := next.byUID[c.UID]; ok {
		next.remove(before)
	}
	next.byUID[c.UID] = c
	next.byHost[c.Host] = c
	next.byName[name{c.Organization, c.Name}] = c
	if p.isDefaultSpec(c.Spec) {
		next.fallback = c
	}
	p.running.Store(next)
}

// Destroy closes the cluster and removes its data. A missing cluster is not an error.
func (p *Plane) Destroy(ctx context.Context, uid string) error { return p.Release(ctx, uid) }

// Release closes the cluster and removes this server's part of its data.
func (p *Plane) Release(ctx context.Context, uid string) error {
	if uid == "" {
		return errs.New(errs.Invalid, "cluster to remove has no UID")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.running.Load().clone()
	c, open := next.byUID[uid]
	delete(next.failed, uid)
	if open {
		next.remove(c)
	}
	if next.fallback == c {
		next.fallback = nil
	}
	p.running.Store(next)
	if open {
		if err := c.close(); err != nil {
			// The data is removed anyway, so the error does not matter.
			p.log.WarnContext(ctx,
				"closing a deleted cluster failed; its data is removed anyway",
				slog.Any("error", err))
		}
	}
	return p.removeDirLocked(uid)
}

// removeDirLocked removes a cluster's directory. It renames the directory first, so that a
// crash cannot leave an incomplete store under its name.
func (p *Plane) removeDirLocked(uid string) error {
	folder := p.dir(uid)
	if err := atomicfile.RemoveDir(folder, folder+deletedSuffix); err != nil {
		return fmt.Errorf("removing a cluster's data: %w", err)
	}
	return nil
}

func (p *Plane) dir(uid string) string { return filepath.Join(p.opts.Dir, filepath.Base(uid)) }

// Find returns the cluster that serves a host, which may include a port.
func (p *Plane) Find(host string) (*Cluster, error) {
	dir := p.running.Load()
	if c, ok := dir.byHost[host]; ok {
		return c, nil
	}
	host = strings.ToLower(strings.TrimSuffix(stripPort(host), "."))
	if c, ok := dir.byHost[host]; ok {
		return c, nil
	}
	if failed := dir.findFailed(func(s provision.Spec) bool { return s.Host == host }); failed != nil {
		return nil, failed.publicError()
	}
	if p.opts.Domain != "" && strings.HasSuffix(host, "."+p.opts.Domain) {
		return nil, ErrNoCluster
	}
	if dir.fallback != nil {
		return dir.fallback, nil
	}
	if failed := dir.findFailed(p.isDefaultSpec); failed != nil {
		return nil, failed.publicError()
	}
	return nil, ErrNoCluster
}

// OrganizationAt returns the organization of the cluster that a host would name, whether the
// cluster exists or not. For hosts outside the domain it is the default organization.
func (p *Plane) OrganizationAt(host string) string {
	host = strings.ToLower(strings.TrimSuffix(stripPort(host), "."))
	name, ok := strings.CutSuffix(host, "."+p.opts.Domain)
	if !ok || p.opts.Domain == "" {
		return p.opts.DefaultOrganization
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// isDefaultSpec reports whether a cluster serves hosts that are not the name of a cluster.
func (p *Plane) isDefaultSpec(s provision.Spec) bool {
	return s.Organization == p.opts.DefaultOrganization && s.Name == p.opts.DefaultName
}

// FindNamed returns the cluster with a name in an organization.
func (p *Plane) FindNamed(organization, cluster string) (*Cluster, error) {
	if c, ok := p.running.Load().byName[name{organization, cluster}]; ok {
		return c, nil
	}
	called := func(s provision.Spec) bool { return s.Organization == organization && s.Name == cluster }
	if failed := p.running.Load().findFailed(called); failed != nil {
		return nil, failed.publicError()
	}
	return nil, ErrNoSuchName
}

func stripPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

// IsDefault reports whether a cluster serves hosts that are not the name of a cluster.
func (p *Plane) IsDefault(c *Cluster) bool { return p.running.Load().fallback == c }

// Has reports whether a cluster is open or could not be opened.
func (p *Plane) Has(uid string) bool {
	dir := p.running.Load()
	_, open := dir.byUID[uid]
	_, failed := dir.failed[uid]
	return open || failed
}

// ServesKafka reports whether a cluster is open and serves the Kafka protocol.
func (p *Plane) ServesKafka(uid string) bool {
	c, ok := p.running.Load().byUID[uid]
	return ok && c.Stream
}

// Clusters lists the open clusters, in no particular order.
func (p *Plane) Clusters() []*Cluster {
	return slices.Collect(maps.Values(p.running.Load().byUID))
}

// Health returns nil while every cluster that should run is open and healthy.
func (p *Plane) Health() error {
	dir := p.running.Load()
	problems := make([]error, 0, len(dir.failed))
	for _, failed := range dir.failed {
		problems = append(problems, failed)
	}
	for _, c := range dir.byUID {
		if err := c.Health(); err != nil {
			problems = append(problems, fmt.Errorf("cluster %s/%s: %w", c.Organization, c.Name, err))
		}
	}
	return errors.Join(problems...)
}

// Drain makes every waiting consumer return, now and in the future, so that the server can
// finish its requests.
func (p *Plane) Drain() {
	for _, c := range p.running.Load().byUID {
		c.Broker.Drain()
	}
}

// Close closes every cluster. Afterwards no cluster can be opened.
func (p *Plane) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	old := p.running.Swap(newIndex())
	var problems []error
	for _, c := range old.byUID {
		problems = append(problems, c.close())
	}
	p.cache.Close()
	return errors.Join(problems...)
}

// scopeOf returns the access scope of a cluster.
func scopeOf(spec provision.Spec) access.Scope {
	return access.Scope{Organization: spec.Organization, Instance: spec.Instance, Cluster: spec.Name}
}

// audiencesOf returns the audiences of the tokens that a cluster accepts: its instance, and
// the whole organization.
func audiencesOf(spec provision.Spec) []string {
	return []string{
		identity.InstanceAudience(spec.Organization, spec.Instance),
		identity.OrganizationAudience(spec.Organization),
	}
}
