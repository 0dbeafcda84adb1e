// Package pool is the kind Pool: the pools of the server's configuration. Every caller can read
// them (kind.go), and the service writes them at startup (publish.go). Users cannot write them.
// ../poolmember owns their members.
package pool

import (
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
)

type object = v1alpha1.Pool

// Kind is the kind Pool.
type Kind struct {
	store.Type[object, v1alpha1.PoolList]
	plan *pools.Plan
}

// New creates the kind; plan contains the pools.
func New(plan *pools.Plan) *Kind { return &Kind{plan: plan} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "Pool", Plural: "pools", Singular: "pool",
		ShortNames: []string{"pool"},
		ReadOnly:   true,
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Type", "Infrastructure of the pool.", func(o *object) string { return o.Spec.Type }),
			printers.New("Deployment", "Deployment type of the pool.",
				func(o *object) string { return o.Spec.DeploymentType }),
		),
	}
}
