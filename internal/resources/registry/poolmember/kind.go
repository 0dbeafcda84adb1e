// Package poolmember describes the kind PoolMember to the resource API. Members
// come from the server's configuration and cannot be written by users.
package poolmember

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
)

type object = v1alpha1.PoolMember

// Definition describes the kind.
func Definition() registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "PoolMember", Plural: "poolmembers", Singular: "poolmember",
		ShortNames: []string{"pm"},
		Access:     registry.ReadOnly,
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.PoolMemberList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
		Fields: func(o *object) fields.Set {
			return fields.Set{"spec.poolName": o.Spec.PoolName}
		},
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Pool", Description: "The pool the member belongs to.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.PoolName },
			},
			printers.Column{
				Name: "Location", Description: "Where it is.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Location },
			},
		),
	})
}
