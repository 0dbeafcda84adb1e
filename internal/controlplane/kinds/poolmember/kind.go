// Package poolmember is the kind PoolMember: the members of the pools in the server's
// configuration. Every caller can read them (kind.go), and the service writes them at startup
// (publish.go). Users cannot write them. ../pool owns the pools.
package poolmember

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
)

type object = v1alpha1.PoolMember

// Kind is the kind PoolMember.
type Kind struct{ plan *pools.Plan }

var _ store.Selectable[*object] = (*Kind)(nil)

// New creates the kind; plan contains the pools.
func New(plan *pools.Plan) *Kind { return &Kind{plan} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "PoolMember", Plural: "poolmembers", Singular: "poolmember",
		ShortNames: []string{"pm"},
		ReadOnly:   true,
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Pool", Description: "The pool of the member.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.PoolName },
			},
			printers.Column{
				Name: "Location", Description: "Location of the member.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Location },
			},
		),
	}
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.PoolMemberList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set { return fields.Set{"spec.poolName": o.Spec.PoolName} }
