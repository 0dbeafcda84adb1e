// Package pool describes the kind Pool to the resource API. Pools come from the
// server's configuration and cannot be written by users.
package pool

import (
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
)

type object = v1alpha1.Pool

// Definition describes the kind.
func Definition() registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "Pool", Plural: "pools", Singular: "pool",
		ShortNames: []string{"pool"},
		Access:     registry.ReadOnly,
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.PoolList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
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
	})
}
