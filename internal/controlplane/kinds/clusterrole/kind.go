// Package clusterrole is the kind ClusterRole: the predefined roles of package access. Every caller
// can read them (kind.go), and the service writes them at startup (publish.go). Users cannot write
// them.
package clusterrole

import (
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
)

type object = v1alpha1.ClusterRole

// Kind is the kind ClusterRole.
type Kind struct{}

// New creates the kind.
func New() *Kind { return &Kind{} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "ClusterRole", Plural: "clusterroles", Singular: "clusterrole",
		ShortNames:    []string{"cr"},
		ClusterScoped: true,
		ReadOnly:      true,
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Permissions", Type: "integer", Description: "Number of permissions of the role.",
				Value: func(o runtime.Object) any { return int64(len(o.(*object).Spec.Permissions)) },
			},
			printers.Column{
				Name: "Description", Description: "Purpose of the role.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Description },
			},
		),
	}
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.ClusterRoleList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }
