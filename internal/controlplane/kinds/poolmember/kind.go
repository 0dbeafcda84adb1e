// Package poolmember is the kind PoolMember: the members of the pools in the server's
// configuration. Every caller can read them (kind.go), and the service writes them at startup
// (publish.go). Users cannot write them. ../pool owns the pools.
package poolmember

import (
	"k8s.io/apimachinery/pkg/fields"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
)

type object = v1alpha1.PoolMember

// Kind is the kind PoolMember.
type Kind struct {
	store.Type[object, v1alpha1.PoolMemberList]
	plan *pools.Plan
}

var _ store.Selectable[*object] = (*Kind)(nil)

// New creates the kind; plan contains the pools.
func New(plan *pools.Plan) *Kind { return &Kind{plan: plan} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "PoolMember", Plural: "poolmembers", Singular: "poolmember",
		ShortNames: []string{"pm"},
		ReadOnly:   true,
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Pool", "The pool of the member.", func(o *object) string { return o.Spec.PoolName }),
			printers.New("Location", "Location of the member.", func(o *object) string { return o.Spec.Location }),
		),
	}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set { return fields.Set{"spec.poolName": o.Spec.PoolName} }
