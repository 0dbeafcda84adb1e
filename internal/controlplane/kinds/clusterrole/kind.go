// Package clusterrole is the kind ClusterRole: the predefined roles of package access. Every caller
// can read them (kind.go), and the service writes them at startup (publish.go). Users cannot write
// them.
package clusterrole

import (
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
)

type object = v1alpha1.ClusterRole

// Kind is the kind ClusterRole.
type Kind struct {
	store.Type[object, v1alpha1.ClusterRoleList]
}

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
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Permissions", "Number of permissions of the role.",
				func(o *object) int64 { return int64(len(o.Spec.Permissions)) }),
			printers.New("Description", "Purpose of the role.", func(o *object) string { return o.Spec.Description }),
		),
	}
}
