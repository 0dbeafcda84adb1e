// Package messagingcluster is the kind MessagingCluster: what it is (kind.go),
// what the service fills in (defaults.go), refuses (validate.go) and cannot give
// (asrequested.go), and how it
// becomes real (reconcile.go, status.go): one store and one set of surfaces per
// cluster, a status that says what really runs, and everything taken down
// before the cluster goes.
//
// What a running cluster is lies behind Plane; engines are not known here.
package messagingcluster

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Finalizer holds a cluster until its data plane is torn down.
const Finalizer = "messagingcluster.finalizers.cloud.vendor.io"

type object = v1alpha1.MessagingCluster

// Instances looks up the owning instance; false when there is none yet. The
// store of MessagingInstances is one.
type Instances interface {
	Lookup(ctx context.Context, namespace, name string) (*v1alpha1.MessagingInstance, bool)
}

// Kind is the kind MessagingCluster.
type Kind struct {
	// Instances is set once, before the kind is used: instances and clusters
	// look at each other.
	Instances Instances

	// Clusters counts those of an organization; it is set like Instances.
	Clusters Counter

	plan   *pools.Plan
	plane  Plane
	quotas *quota.Book
}

// Counter tells how many objects an organization has. The store of
// MessagingClusters is one.
type Counter interface {
	Count(ctx context.Context, namespace string) (int64, error)
}

var (
	_ store.DeletionMarker[*object]  = (*Kind)(nil)
	_ store.Defaulter[*object]       = (*Kind)(nil)
	_ store.Preparer[*object]        = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.NameValidator            = (*Kind)(nil)
	_ store.CreateValidator[*object] = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.DeleteValidator[*object] = (*Kind)(nil)
	_ store.Warner[*object]          = (*Kind)(nil)
	_ store.Limiter[*object]         = (*Kind)(nil)
	_ store.Locator[*object]         = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
)

// New makes the kind: plan knows where clusters can run, plane runs them, quotas
// say how many there may be.
func New(plan *pools.Plan, plane Plane, quotas *quota.Book) *Kind {
	return &Kind{plan: plan, plane: plane, quotas: quotas}
}

// Reserve implements store.Limiter.
func (k *Kind) Reserve(ctx context.Context, o *object) (done func(), err error) {
	return k.quotas.Organization(o.Namespace).Create(ctx, quota.Clusters, func(ctx context.Context) (int64, error) {
		return k.Clusters.Count(ctx, o.Namespace)
	})
}

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "MessagingCluster", Plural: "messagingclusters", Singular: "messagingcluster",
		ShortNames: []string{"mc"},
		Finalizer:  Finalizer,
		Owner:      "MessagingInstance",
		OwnerField: "spec.instanceName",
		NamePrefix: "mc-",
		Columns:    columns(),
	}
}

// MarkDeleting implements store.DeletionMarker.
func (*Kind) MarkDeleting(o *object) {
	o.Status.Conditions, _ = conditions.Deleting(o.Status.Conditions, "the data plane is being torn down",
		o.Generation+1)
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.MessagingClusterList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{Organization: o.Namespace, Instance: o.Spec.InstanceName, Cluster: o.Name}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set {
	return fields.Set{
		"spec.instanceName": o.Spec.InstanceName,
		"spec.location":     o.Spec.Location,
	}
}

func columns() []printers.Column {
	return append(
		printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
		printers.Column{
			Name: "As Requested", Description: "Whether the cluster is all that its spec asks for; the condition " +
				"AsRequested names what it is not.",
			Value: func(o runtime.Object) any {
				asked, _ := conditions.Find(o.(*object).Status.Conditions, conditionAsRequested)
				return string(asked.Status)
			},
		},
		printers.Column{
			Name: "Instance", Description: "The owning instance.",
			Value: func(o runtime.Object) any { return o.(*object).Spec.InstanceName },
		},
		printers.Column{
			Name: "Location", Description: "Where the cluster runs.",
			Value: func(o runtime.Object) any { return o.(*object).Spec.Location },
		},
		printers.Column{
			Name: "Endpoint", Description: "The name the cluster answers at.", Wide: true,
			Value: func(o runtime.Object) any { return hostOf(o.(*object)) },
		},
		printers.Column{
			Name: "URL", Description: "Where the cluster answers without a name of its own; status.endpoints has " +
				"every service.", Wide: true,
			Value: func(o runtime.Object) any { return urlOf(o.(*object)) },
		},
	)
}
