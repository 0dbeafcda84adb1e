// Package kinds is the list of kinds. Each lives in a folder of its own, which
// holds everything that makes it what it is; this package puts them together
// and runs their reconcilers over one set of informers (run.go).
//
// Whatever has to know all kinds reads this list: the store and the documents
// through Definitions, garbage collection, start-up. A kind knows no other; the
// two that look at each other do so through their stores.
package kinds

import (
	"context"
	"log/slog"

	"freshet/api/generated/clientset/versioned"
	"freshet/internal/controlplane/kinds/apikey"
	"freshet/internal/controlplane/kinds/clusterrole"
	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/controlplane/kinds/messaginginstance"
	"freshet/internal/controlplane/kinds/pool"
	"freshet/internal/controlplane/kinds/poolmember"
	"freshet/internal/controlplane/kinds/role"
	"freshet/internal/controlplane/kinds/rolebinding"
	"freshet/internal/controlplane/kinds/serviceaccount"
	"freshet/internal/controlplane/kinds/serviceaccountbinding"
	"freshet/internal/controlplane/kinds/user"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Options is what the kinds need from the rest of the service.
type Options struct {
	Plan      *pools.Plan
	Plane     messagingcluster.Plane
	Issuer    *identity.Issuer
	Directory *identity.Directory
	Sealer    *identity.Sealer
	Policy    *access.Policy
	SignIns   user.SignIns
	Quotas    *quota.Book // nil: organizations may have what they like
	// SystemOrganization and SystemAccount name the system administrator.
	SystemOrganization string
	SystemAccount      string
	// Stored is told of every write that decides who may call, before the call is
	// answered; nil for a server that is alone.
	Stored func(Change)
	Log    *slog.Logger
}

// Reconciled is a kind whose objects are brought to where their spec wants them.
type Reconciled interface {
	Controller(env reconcile.Env) (reconcile.Runner, error)
}

// Published is a kind whose objects come with the service.
type Published interface {
	Publish(ctx context.Context, client versioned.Interface) error
}

// Set is every kind.
type Set struct {
	opts        Options
	definitions []store.Definition
	reconciled  []Reconciled
	published   []Published
	observed    map[string]observed // by kind
	order       []string            // in which kinds are read

	accounts  *serviceaccount.Kind
	keys      *apikey.Kind
	roles     *role.Kind
	bindings  *rolebinding.Kind
	instances *messaginginstance.Kind
	users     *user.Kind
}

// New makes the kinds. To add one, make its folder and add it here.
func New(opts Options) *Set {
	s := &Set{
		opts: opts, observed: map[string]observed{},
		accounts: serviceaccount.New(serviceaccount.Options{
			Issuer: opts.Issuer, Directory: opts.Directory, Sealer: opts.Sealer, Authorizer: opts.Policy,
			SystemOrganization: opts.SystemOrganization, SystemAccount: opts.SystemAccount, Log: opts.Log,
		}),
		keys:      apikey.New(opts.Issuer, opts.Directory, opts.Policy, opts.Log),
		users:     user.New(user.Options{Directory: opts.Directory, Authorizer: opts.Policy, SignIns: opts.SignIns}),
		roles:     role.New(opts.Policy),
		bindings:  rolebinding.New(opts.Policy),
		instances: messaginginstance.New(opts.Plan, opts.Issuer.URL(), opts.Directory, opts.Quotas),
	}
	clusters := messagingcluster.New(opts.Plan, opts.Plane, opts.Quotas)

	accounts := add(s, s.accounts)
	add(s, serviceaccountbinding.New(opts.Plan, accounts))
	add(s, s.users)
	instanceStore := add(s, s.instances)
	clusterStore := add(s, clusters)
	clusters.Instances, clusters.Clusters = instanceStore, clusterStore
	s.instances.Clusters, s.instances.Instances = clusterStore, instanceStore
	add(s, s.keys)
	add(s, s.roles)
	add(s, s.bindings)
	add(s, clusterrole.New())
	add(s, pool.New(opts.Plan))
	add(s, poolmember.New(opts.Plan))
	return s
}

// add puts a kind into the list, and returns the store that others may read.
func add[T store.Object](s *Set, kind store.Kind[T]) *store.Resource[T] {
	resource := store.Define(kind)
	s.definitions = append(s.definitions, resource)
	observe(s, kind, resource)
	if k, ok := kind.(Reconciled); ok {
		s.reconciled = append(s.reconciled, k)
	}
	if k, ok := kind.(Published); ok {
		s.published = append(s.published, k)
	}
	return resource
}

// Definitions are the kinds as the resource API takes them.
func (s *Set) Definitions() []store.Definition { return s.definitions }

// Instances tells how long tokens for an instance are good.
func (s *Set) Instances() *messaginginstance.Kind { return s.instances }
