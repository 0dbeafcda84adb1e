// Package messaginginstance is the kind MessagingInstance: its definition (kind.go), defaults and
// validation (validate.go), its reconciler with the authentication of clients and readiness
// (reconcile.go), and the synchronization with the identity directory (feed.go).
//
// An instance runs nothing itself; its clusters do (../messagingcluster). Its deletion waits for
// its clusters and deletes its keys.
//
// tokenLifetimes.mu is the only lock. It protects the token lifetimes, and the lock of
// identity.Directory is taken while it is held, so that both change in the same order.
package messaginginstance

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"freshet/api/v1alpha1"
	"freshet/internal/base/revision"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Finalizer holds an instance until its clusters and keys are deleted.
const Finalizer = "messaginginstance.finalizers.cloud.vendor.io"

type object = v1alpha1.MessagingInstance

// Clusters returns the names of the clusters in a namespace whose field has a value, and of those
// that are protected from deletion. ValidateDelete uses it to reject the deletion of their
// instance. The store of MessagingClusters implements it.
type Clusters interface {
	NamesWhere(ctx context.Context, namespace, field, value string) (names, protected []string, err error)
}

// Counter returns the number of objects in an organization. The store of MessagingInstances
// implements it.
type Counter interface {
	Count(ctx context.Context, namespace string) (int64, error)
}

// Kind is the kind MessagingInstance.
type Kind struct {
	store.Type[object, v1alpha1.MessagingInstanceList]

	// Clusters is set once, before the kind is used, because instances and clusters refer to each
	// other.
	Clusters Clusters
	// Instances counts the instances of an organization; it is set like Clusters.
	Instances Counter

	plan      *pools.Plan
	issuerURL string // URL of the token issuer
	directory *identity.Directory
	quotas    *quota.Organizations
	lifetimes tokenLifetimes
}

var (
	_ store.Defaulter[*object]       = (*Kind)(nil)
	_ store.Preparer[*object]        = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.DeleteValidator[*object] = (*Kind)(nil)
	_ store.Locator[*object]         = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
	_ store.Observer[*object]        = (*Kind)(nil)
	_ store.Limiter[*object]         = (*Kind)(nil)
)

// New creates the kind. plan contains the pools, issuerURL is where clients get tokens, directory
// rejects the keys of a deleted instance, quotas limits the number of instances.
func New(plan *pools.Plan, issuerURL string, directory *identity.Directory, quotas *quota.Organizations) *Kind {
	return &Kind{
		plan: plan, issuerURL: issuerURL, directory: directory, quotas: quotas,
		lifetimes: tokenLifetimes{byInstance: revision.NewMap[instanceKey, time.Duration](tombstones)},
	}
}

// Quota implements store.Limiter.
func (*Kind) Quota() quota.Resource { return quota.Instances }

// Reserve implements store.Limiter.
func (k *Kind) Reserve(ctx context.Context, o *object) (done func(), err error) {
	return k.quotas.Organization(o.Namespace).Create(ctx, quota.Instances, func(ctx context.Context) (int64, error) {
		return k.Instances.Count(ctx, o.Namespace)
	})
}

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "MessagingInstance", Plural: "messaginginstances", Singular: "messaginginstance",
		ShortNames:      []string{"mi"},
		DeletingMessage: "its clusters and keys are being deleted first",
		Finalizer:       Finalizer,
		LoadedLast:      true, // an instance that is being deleted ends its keys
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Type", "Type of the instance.", func(o *object) string { return o.Spec.Type }),
			printers.NewWide("Mode", "Availability mode.", func(o *object) string { return o.Spec.AvailabilityMode }),
		),
	}
}

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{Organization: o.Namespace, Instance: o.Name}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set { return fields.Set{"spec.type": o.Spec.Type} }
