// Package role is the kind Role: the custom roles of an organization. It contains the definition
// (kind.go), validation and admission (validate.go), and the synchronization with access.Policy
// (feed.go): the store's write path updates the policy before a call returns, and the informer
// updates it again; reconcile.go then writes the status. ../clusterrole owns predefined roles,
// ../rolebinding assigns roles, and package access evaluates them.
package role

import (
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

type object = v1alpha1.Role

// Kind is the kind Role. It has no finalizer: a role and its bindings have no effect any more when
// the delete call returns.
type Kind struct{ policy *access.Policy }

var (
	_ store.DeletionMarker[*object] = (*Kind)(nil)
	_ store.NameValidator           = (*Kind)(nil)
	_ store.Validator[*object]      = (*Kind)(nil)
	_ store.Admitter[*object]       = (*Kind)(nil)
	_ store.Observer[*object]       = (*Kind)(nil)
)

// New creates the kind; policy enforces the roles.
func New(policy *access.Policy) *Kind { return &Kind{policy} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "Role", Plural: "roles", Singular: "role",
		ShortNames: []string{"ro"},
		Strict:     true, // an unknown field may be an intended restriction
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

// MarkDeleting implements store.DeletionMarker.
func (*Kind) MarkDeleting(o *object) {
	o.Status.Conditions, _ = conditions.Deleting(o.Status.Conditions, conditions.MessageDeleting, o.Generation+1)
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.RoleList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }
