// Package messagingcluster is the kind MessagingCluster: its definition (kind.go), defaults
// (defaults.go), validation (validate.go, protocols.go), addresses (endpoints.go), the requests
// without effect (asrequested.go), and its reconciler (reconcile.go, status.go, shards.go). The
// reconciler provisions one store and one set of surfaces per cluster, reports the running state in
// the status, and tears everything down before the cluster is deleted.
//
// Plane hides the running cluster; this package does not depend on engines. ../messaginginstance
// owns the instances.
//
// Controller.mu is the only lock. It protects the UIDs of deleted clusters and is held for map access
// only.
package messagingcluster

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"

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

// Instances looks up the owning instance; it returns false if it does not exist. The store of
// MessagingInstances implements it.
type Instances interface {
	Lookup(ctx context.Context, namespace, name string) (*v1alpha1.MessagingInstance, bool)
}

// Kind is the kind MessagingCluster.
type Kind struct {
	store.Type[object, v1alpha1.MessagingClusterList]

	// Instances is set once, before the kind is used, because instances and clusters refer to each
	// other.
	Instances Instances

	// Clusters counts the clusters of an organization; it is set like Instances.
	Clusters Counter

	plan   *pools.Plan
	plane  Plane
	quotas *quota.Organizations
}

// Counter returns the number of objects in an organization. The store of MessagingClusters
// implements it.
type Counter interface {
	Count(ctx context.Context, namespace string) (int64, error)
}

var (
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
	_ store.ApplyRewriter[*object]   = (*Kind)(nil)
)

// New creates the kind. plan determines where clusters can run, plane runs them, quotas limits
// their number.
func New(plan *pools.Plan, plane Plane, quotas *quota.Organizations) *Kind {
	return &Kind{plan: plan, plane: plane, quotas: quotas}
}

// Quota implements store.Limiter.
func (*Kind) Quota() quota.Resource { return quota.Clusters }

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
		ShortNames:      []string{"mc"},
		DeletingMessage: "the data plane is being torn down",
		Finalizer:       Finalizer,
		Owner:           "MessagingInstance",
		OwnerField:      "spec.instanceName",
		NamePrefix:      "mc-",
		Columns:         columns(),
	}
}

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
		printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
		printers.New("As Requested", "Whether everything that the spec requests is in effect; the condition "+
			"AsRequested lists the fields that are not.", func(o *object) string {
			requested, _ := conditions.Find(o.Status.Conditions, conditionAsRequested)
			return string(requested.Status)
		}),
		printers.New("Instance", "The owning instance.", func(o *object) string { return o.Spec.InstanceName }),
		printers.New("Location", "Where the cluster runs.", func(o *object) string { return o.Spec.Location }),
		printers.NewWide("Endpoint", "The host name of the cluster.", hostOf),
		printers.NewWide("URL",
			"URL of the cluster without a host name of its own; status.endpoints has every service.", urlOf),
	)
}
