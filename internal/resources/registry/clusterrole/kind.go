// Package clusterrole describes the kind ClusterRole to the resource API. Roles
// are predefined in access and cannot be written by users.
package clusterrole

import (
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
)

type object = v1alpha1.ClusterRole

// Definition describes the kind.
func Definition() registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "ClusterRole", Plural: "clusterroles", Singular: "clusterrole",
		ShortNames: []string{"cr"},
		Cluster:    true,
		Access:     registry.ReadOnly,
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.ClusterRoleList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Permissions", Type: "integer", Description: "How many permissions the role gives.",
				Value: func(o runtime.Object) any { return int64(len(o.(*object).Spec.Permissions)) },
			},
			printers.Column{
				Name: "Description", Description: "What the role is for.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Description },
			},
		),
	})
}
