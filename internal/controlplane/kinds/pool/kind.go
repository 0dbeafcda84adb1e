// Package pool is the kind Pool: the pools of the server's configuration. Every caller can read
// them (kind.go), and the service writes them at startup (publish.go). Users cannot write them.
// ../poolmember owns their members.
package pool

import (
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
)

type object = v1alpha1.Pool

// Kind is the kind Pool.
type Kind struct{ plan *pools.Plan }

// New creates the kind; plan contains the pools.
func New(plan *pools.Plan) *Kind { return &Kind{plan} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "Pool", Plural: "pools", Singular: "pool",
		ShortNames: []string{"pool"},
		ReadOnly:   true,
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Type", Description: "Infrastructure of the pool.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Type },
			},
			printers.Column{
				Name: "Deployment", Description: "Deployment type of the pool.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.DeploymentType },
			},
		),
	}
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.PoolList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }
