// Package messagingcluster describes the kind MessagingCluster to the resource
// API: what the service fills in (defaults.go) and what it refuses
// (validate.go). controllers/cluster makes the data plane behind it.
package messagingcluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/resources/placement"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
)

// Finalizer holds a cluster until its data plane is torn down.
const Finalizer = "messagingcluster.finalizers.cloud.vendor.io"

type object = v1alpha1.MessagingCluster

// Instance looks up the owning instance; false when there is none yet.
type Instance func(ctx context.Context, namespace, name string) (*v1alpha1.MessagingInstance, bool)

// Definition describes the kind.
func Definition(plan *placement.Plan, instance Instance, observer registry.Observer[*object]) registry.Definition {
	c := clusters{plan: plan, instance: instance}
	return registry.Define(registry.Kind[*object]{
		Kind: "MessagingCluster", Plural: "messagingclusters", Singular: "messagingcluster",
		ShortNames:     []string{"mc"},
		Finalizer:      Finalizer,
		Owner:          "MessagingInstance",
		NamePrefix:     "mc-",
		New:            func() *object { return &object{} },
		NewList:        func() runtime.Object { return &v1alpha1.MessagingClusterList{} },
		Spec:           func(o *object) any { return &o.Spec },
		Status:         func(o *object) any { return &o.Status },
		Default:        setDefaults,
		PrepareCreate:  c.prepareCreate,
		PrepareUpdate:  prepareUpdate,
		Validate:       func(_ context.Context, o *object) field.ErrorList { return validate(o) },
		ValidateCreate: c.validatePlace,
		ValidateUpdate: c.validateUpdate,
		ValidateDelete: func(_ context.Context, o *object, _ *metav1.DeleteOptions) error {
			if registry.Protected(o) {
				return registry.ProtectedError(v1alpha1.Resource("messagingclusters"), o.Name)
			}
			return nil
		},
		Scope: func(o *object) access.Scope {
			return access.Scope{Organization: o.Namespace, Instance: o.Spec.InstanceName, Cluster: o.Name}
		},
		Fields: func(o *object) fields.Set {
			return fields.Set{
				"spec.instanceName": o.Spec.InstanceName,
				"spec.location":     o.Spec.Location,
			}
		},
		Columns:  columns(),
		Observer: observer,
	})
}

func columns() []printers.Column {
	return append(
		printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
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
			Value: func(o runtime.Object) any {
				if endpoints := o.(*object).Spec.ServiceEndpoints; len(endpoints) > 0 {
					return endpoints[0].DNSName
				}
				return ""
			},
		},
	)
}
