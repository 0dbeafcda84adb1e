// Package messaginginstance is the kind MessagingInstance: what it is (kind.go),
// what it fills in and refuses (validate.go), how clients authenticate and when
// it is ready (reconcile.go), and how identity hears of it (feed.go).
//
// An instance runs nothing itself; its clusters do, next door in
// ../messagingcluster. Its end waits for them and takes its keys along.
package messaginginstance

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/base/revision"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Finalizer holds an instance until its clusters are gone.
const Finalizer = "messaginginstance.finalizers.cloud.vendor.io"

type object = v1alpha1.MessagingInstance

// Clusters names the clusters of a namespace whose field has a value, to refuse
// the deletion of their instance; protected are those of them that may not be
// deleted. The store of MessagingClusters is one.
type Clusters interface {
	NamesWhere(ctx context.Context, namespace, field, value string) (names, protected []string, err error)
}

// Counter tells how many objects an organization has. The store of
// MessagingInstances is one.
type Counter interface {
	Count(ctx context.Context, namespace string) (int64, error)
}

// Kind is the kind MessagingInstance.
type Kind struct {
	// Clusters is set once, before the kind is used: instances and clusters look
	// at each other.
	Clusters Clusters
	// Instances counts those of an organization; it is set like Clusters.
	Instances Counter

	plan      *pools.Plan
	issuerURL string // where tokens come from
	directory *identity.Directory
	quotas    *quota.Book
	lifetimes lifetimes
}

var (
	_ store.DeletionMarker[*object]  = (*Kind)(nil)
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

// New makes the kind: plan knows the pools, issuerURL is where clients get
// tokens, the directory is told which keys die with an instance, quotas say how
// many there may be.
func New(plan *pools.Plan, issuerURL string, directory *identity.Directory, quotas *quota.Book) *Kind {
	return &Kind{
		plan: plan, issuerURL: issuerURL, directory: directory, quotas: quotas,
		lifetimes: lifetimes{known: revision.NewMap[place, time.Duration](tombstones)},
	}
}

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
		ShortNames: []string{"mi"},
		Finalizer:  Finalizer,
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Type", Description: "Type of the instance.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Type },
			},
			printers.Column{
				Name: "Mode", Description: "Availability mode.", Wide: true,
				Value: func(o runtime.Object) any { return o.(*object).Spec.AvailabilityMode },
			},
		),
	}
}

// MarkDeleting implements store.DeletionMarker.
func (*Kind) MarkDeleting(o *object) {
	o.Status.Conditions, _ = conditions.Deleting(o.Status.Conditions, "its clusters and keys go first", o.Generation+1)
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.MessagingInstanceList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{Organization: o.Namespace, Instance: o.Name}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set { return fields.Set{"spec.type": o.Spec.Type} }
