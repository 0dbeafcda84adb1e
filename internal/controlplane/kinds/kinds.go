// Package kinds is the list of all kinds. Each kind is a package below this one that contains
// everything about it; this package combines them, runs their reconcilers over one set of informers
// (run.go), and distributes changes that affect authentication and authorization to the other
// members of an ensemble (observed.go).
//
// Code that needs all kinds uses this list: the store and the OpenAPI documents through
// Definitions, garbage collection, startup. Kinds do not import each other; instances and clusters
// use each other through their stores.
//
// recentObjects.mu is the only lock. It protects the recently stored objects of one kind, and no other
// lock is taken while it is held.
package kinds

import (
	"context"
	"log/slog"
	"time"

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
	"freshet/internal/controlplane/kinds/user/invite"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Options are the dependencies of the kinds.
type Options struct {
	Plan      *pools.Plan
	Plane     messagingcluster.Plane
	Issuer    *identity.Issuer
	Directory *identity.Directory
	Sealer    *identity.Sealer
	Policy    *access.Policy
	SignIns   user.SignIns
	Quotas    *quota.Organizations // nil: no limits
	// Addresses of the resource API are the audiences of tokens, and TokenLifetime is how long a token
	// for them is valid. Without addresses serviceaccounts/token is not served.
	Addresses     []string
	TokenLifetime time.Duration
	// Inviter creates invitation links, and Links returns their URLs. Without an inviter users/invite
	// is not served.
	Inviter invite.Inviter
	Links   invite.Links
	// SystemOrganization and SystemAccount name the system administrator.
	SystemOrganization string
	SystemAccount      string
	Replicas           Replicas // nil for a single server
	Log                *slog.Logger
}

// Reconciled is a kind with a reconciler.
type Reconciled interface {
	Controller(env reconcile.Env) (reconcile.Runner, error)
}

// Published is a kind whose objects the service creates.
type Published interface {
	Publish(ctx context.Context, client versioned.Interface) error
}

// Set contains all kinds.
type Set struct {
	opts         Options
	definitions  []store.Definition
	reconciled   []Reconciled
	published    []Published
	observed     []observedKind // in the order in which they are loaded
	observedLast []observedKind // those that are loaded after the others; empty after New
	instances    *messaginginstance.Kind
}

// New creates the kinds. To add a kind, create its package and add it here.
func New(opts Options) *Set {
	s := &Set{
		opts:      opts,
		instances: messaginginstance.New(opts.Plan, opts.Issuer.URL(), opts.Directory, opts.Quotas),
	}
	accounts := add(s, serviceaccount.New(serviceaccount.Options{
		Issuer: opts.Issuer, Directory: opts.Directory, Sealer: opts.Sealer, Authorizer: opts.Policy,
		Audiences: identity.Audiences{
			Addresses: opts.Addresses, Instances: s.instances, Lifetime: opts.TokenLifetime,
		},
		SystemOrganization: opts.SystemOrganization, SystemAccount: opts.SystemAccount, Log: opts.Log,
	}))
	add(s, serviceaccountbinding.New(opts.Plan, accounts))
	add(s, user.New(user.Options{
		Directory: opts.Directory, Authorizer: opts.Policy, SignIns: opts.SignIns,
		Inviter: opts.Inviter, Links: opts.Links,
	}))
	clusters := messagingcluster.New(opts.Plan, opts.Plane, opts.Quotas)
	instanceStore, clusterStore := add(s, s.instances), add(s, clusters)
	clusters.Instances, clusters.Clusters = instanceStore, clusterStore
	s.instances.Clusters, s.instances.Instances = clusterStore, instanceStore
	add(s, apikey.New(opts.Issuer, opts.Directory, opts.Policy, opts.Log))
	add(s, role.New(opts.Policy))
	add(s, rolebinding.New(opts.Policy))
	add(s, clusterrole.New())
	add(s, pool.New(opts.Plan))
	add(s, poolmember.New(opts.Plan))
	s.observed, s.observedLast = append(s.observed, s.observedLast...), nil
	return s
}

// add adds a kind to the list, and returns its store for other kinds.
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

// Definitions returns the kinds in the form that the resource API uses.
func (s *Set) Definitions() []store.Definition { return s.definitions }

// Instances returns the kind MessagingInstance, which provides the token lifetime of instances.
func (s *Set) Instances() *messaginginstance.Kind { return s.instances }
