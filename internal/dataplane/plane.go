// Package dataplane runs messaging clusters: for each one an engine of its own
// in a folder of its own, with the broker and the schema registry on top, found
// by the Host of a request, or by organization and name.
//
// The reconciler of the MessagingCluster kind says what should run, in the words
// of dataplane/provision; messageapi and registryapi serve what does. Two
// clusters share the process, the disk and one block cache, and nothing that a
// user could see.
//
// One lock, Plane.mu, is held while a cluster is opened, changed or closed, so
// these happen one after the other. Requests take no lock: they look clusters up
// in an index that is replaced and never changed (Plane.running).
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

	"freshet/internal/base/errs"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane/provision"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/pebble"
)

// Options configure a plane.
type Options struct {
	Dir string // one folder per cluster, by UID
	// DefaultOrganization and DefaultName pick the cluster that answers for
	// hosts that are no cluster's name; empty for none.
	DefaultOrganization string
	DefaultName         string
	// Domain is the parent of clusters' names: a host beneath it that is no
	// cluster's name is nobody's, not the default cluster's.
	Domain      string
	CacheBytes  int64 // block cache for all clusters together; 64 MiB when 0
	OpenTables  int   // files that all clusters together keep open to read; 1000 when 0
	DiskReserve int64 // free space that messages leave untouched; the engine's choice when 0
	Limits      messaging.Limits
	// MayLack says of a cluster that has run before that its store need not be
	// there: after a restore, one that was made during the backup. nil: of none.
	MayLack func(uid string) bool
	Quotas  *quota.Book // nil: organizations may have what they like
	Group   Group       // nil: the server is alone
	Logger  *slog.Logger
}

const (
	engineName       = "pebble"
	defaultCache     = 64 << 20
	defaultTables    = 1000
	deletedSuffix    = ".deleted"
	folderPermission = 0o700
)

// ErrNoCluster is the answer to a host that names no running cluster, ErrNoSuchName
// to an organization and a name.
var (
	ErrNoCluster  = errs.New(errs.NotFound, "no messaging cluster answers at this host")
	ErrNoSuchName = errs.New(errs.NotFound, "no messaging cluster of this organization has this name")
)

// Plane runs clusters.
type Plane struct {
	opts  Options
	cache *pebble.Cache
	pool  *workpool.Pool // one for all clusters: they share the processor
	log   *slog.Logger

	mu      sync.Mutex // held while clusters are opened and closed
	closed  bool
	running atomic.Pointer[index]
}

// index is what requests look things up in; it is replaced, never changed.
type index struct {
	byUID    map[string]*Cluster
	byHost   map[string]*Cluster
	byName   map[name]*Cluster
	failed   map[string]*failedCluster // by UID: those that should run and could not be opened
	fallback *Cluster
}

// name is what a cluster is called in the resource API.
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

// remove takes out a cluster that the index was cloned with, and leaves what has
// taken its addresses since.
func (d *index) remove(c *Cluster) {
	delete(d.byUID, c.UID)
	if d.byHost[c.Host] == c {
		delete(d.byHost, c.Host)
	}
	if at := (name{c.Organization, c.Name}); d.byName[at] == c {
		delete(d.byName, at)
	}
}

// Open makes a plane with nothing running, and removes what a deletion that was
// cut short left behind.
func Open(opts Options) (*Plane, error) {
	if opts.CacheBytes == 0 {
		opts.CacheBytes = defaultCache
	}
	if opts.OpenTables == 0 {
		opts.OpenTables = defaultTables
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if err := os.MkdirAll(opts.Dir, folderPermission); err != nil {
		return nil, fmt.Errorf("creating the folder of the clusters: %w", err)
	}
	leftovers, err := filepath.Glob(filepath.Join(opts.Dir, "*"+deletedSuffix))
	if err != nil {
		return nil, fmt.Errorf("looking for deleted clusters: %w", err)
	}
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return nil, fmt.Errorf("removing a deleted cluster: %w", err)
		}
	}
	p := &Plane{
		opts: opts, cache: pebble.NewCache(opts.CacheBytes, opts.OpenTables), pool: workpool.New(),
		log: opts.Logger,
	}
	p.running.Store(newIndex())
	return p, nil
}

// Provision opens the cluster, or brings an open one up to date, and reports
// each part that has come up. Calling it again with the same spec changes
// nothing. report is called while no other cluster can be opened, so it should
// be short.
func (p *Plane) Provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error {
	if err := p.provision(ctx, spec, report); err != nil {
		return err
	}
	if c, ok := p.running.Load().byUID[spec.UID]; ok {
		return c.awaitOwners(ctx)
	}
	return nil
}

func (p *Plane) provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errs.New(errs.Unavailable, "the server is shutting down")
	}
	if spec.Engine != engineName {
		return errs.Newf(errs.Invalid, "engine %q is not built into this server; use %q", spec.Engine, engineName)
	}
	if old, ok := p.running.Load().byUID[spec.UID]; ok {
		if !old.Equal(spec) {
			old.Quota.Change(quota.ClusterLimits(spec.Custom))
			old.setCopies(spec.Copies)
			p.publishLocked(old.with(spec))
		}
		return old.Health()
	}
	opened, err := p.open(ctx, spec, report)
	if err != nil {
		next := p.running.Load().clone()
		next.failed[spec.UID] = &failedCluster{spec, err}
		p.running.Store(next)
		return err
	}
	p.publishLocked(opened)
	report(provision.Proxy)
	p.log.Info("cluster is open", slog.String("cluster", spec.Organization+"/"+spec.Name),
		slog.String("host", spec.Host))
	return nil
}

// publishLocked makes requests find a cluster; the caller holds mu.
func (p *Plane) publishLocked(c *Cluster) {
	next := p.running.Load().clone()
	delete(next.failed, c.UID)
	if before, ok := next.byUID[c.UID]; ok {
		next.remove(before)
	}
	next.byUID[c.UID] = c
	next.byHost[c.Host] = c
	next.byName[name{c.Organization, c.Name}] = c
	if p.answersForAll(c.Spec) {
		next.fallback = c
	}
	p.running.Store(next)
}

// Destroy closes the cluster and removes its data; one that is not there is fine.
func (p *Plane) Destroy(ctx context.Context, uid string) error { return p.Release(ctx, uid) }

// Release closes the cluster and removes what this server has of it.
func (p *Plane) Release(ctx context.Context, uid string) error {
	if uid == "" {
		return errs.New(errs.Invalid, "a cluster without a UID has no data to remove")
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
			// The data is to go anyway; what matters is that it goes.
			p.log.WarnContext(ctx,
				"a cluster that is being deleted could not be closed; its data is removed all the same",
				slog.String("error", err.Error()))
		}
	}
	return p.removeFolder(uid)
}

// removeFolder removes a cluster's folder in a way that a crash cannot leave half
// a store under its name.
func (p *Plane) removeFolder(uid string) error {
	folder := p.folder(uid)
	deleted := folder + deletedSuffix
	if err := os.Rename(folder, deleted); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a cluster's data: %w", err)
	}
	if err := os.RemoveAll(deleted); err != nil {
		return fmt.Errorf("removing a cluster's data: %w", err)
	}
	return nil
}

func (p *Plane) folder(uid string) string { return filepath.Join(p.opts.Dir, filepath.Base(uid)) }

// Find returns the cluster that answers at a host, which may carry a port.
func (p *Plane) Find(host string) (*Cluster, error) {
	dir := p.running.Load()
	if c, ok := dir.byHost[host]; ok {
		return c, nil
	}
	host = strings.ToLower(strings.TrimSuffix(stripPort(host), "."))
	if c, ok := dir.byHost[host]; ok {
		return c, nil
	}
	if failed := dir.failedWhere(func(s provision.Spec) bool { return s.Host == host }); failed != nil {
		return nil, failed.public()
	}
	if p.opts.Domain != "" && strings.HasSuffix(host, "."+p.opts.Domain) {
		return nil, ErrNoCluster
	}
	if dir.fallback != nil {
		return dir.fallback, nil
	}
	if failed := dir.failedWhere(p.answersForAll); failed != nil {
		return nil, failed.public()
	}
	return nil, ErrNoCluster
}

// OrganizationAt returns the organization whose cluster a host would name, whether
// there is one or not; "" for a host that is not of the domain. Such hosts are the
// default cluster's.
func (p *Plane) OrganizationAt(host string) string {
	host = strings.ToLower(strings.TrimSuffix(stripPort(host), "."))
	name, ok := strings.CutSuffix(host, "."+p.opts.Domain)
	if !ok || p.opts.Domain == "" {
		return p.opts.DefaultOrganization
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// answersForAll says whether a cluster is the one for hosts that are nobody's name.
func (p *Plane) answersForAll(s provision.Spec) bool {
	return s.Organization == p.opts.DefaultOrganization && s.Name == p.opts.DefaultName
}

// FindNamed returns the cluster that has a name in an organization.
func (p *Plane) FindNamed(organization, cluster string) (*Cluster, error) {
	if c, ok := p.running.Load().byName[name{organization, cluster}]; ok {
		return c, nil
	}
	called := func(s provision.Spec) bool { return s.Organization == organization && s.Name == cluster }
	if failed := p.running.Load().failedWhere(called); failed != nil {
		return nil, failed.public()
	}
	return nil, ErrNoSuchName
}

func stripPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

// IsDefault says whether a cluster answers for hosts that are nobody's name.
func (p *Plane) IsDefault(c *Cluster) bool { return p.running.Load().fallback == c }

// Has says whether a cluster is open, or could not be opened.
func (p *Plane) Has(uid string) bool {
	dir := p.running.Load()
	_, open := dir.byUID[uid]
	_, failed := dir.failed[uid]
	return open || failed
}

// ServesStream says whether a cluster is open and has the stream protocol.
func (p *Plane) ServesStream(uid string) bool {
	c, ok := p.running.Load().byUID[uid]
	return ok && c.Stream
}

// Clusters lists the open clusters, in no particular order.
func (p *Plane) Clusters() []*Cluster {
	return slices.Collect(maps.Values(p.running.Load().byUID))
}

// Health returns nil while every cluster that should run does, and keeps its
// promises.
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

// Drain answers every waiting consumer, now and from now on, so that a server
// can finish its requests.
func (p *Plane) Drain() {
	for _, c := range p.running.Load().byUID {
		c.Broker.Drain()
	}
}

// Close closes every cluster. Nothing can be opened after it.
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

// scopeOf is where a cluster's things are, for access.
func scopeOf(spec provision.Spec) access.Scope {
	return access.Scope{Organization: spec.Organization, Instance: spec.Instance, Cluster: spec.Name}
}

// audiencesOf are the tokens a cluster accepts: for its instance, and for the
// whole organization.
func audiencesOf(spec provision.Spec) []string {
	return []string{
		identity.InstanceAudience(spec.Organization, spec.Instance),
		identity.OrganizationAudience(spec.Organization),
	}
}
