// Package rolebinding is the kind RoleBinding: its definition (kind.go), validation and admission
// (validate.go), and the synchronization with access.Policy (feed.go, convert.go): the store's
// write path updates the policy before a call returns, and the informer updates it again;
// reconcile.go then writes the status. Package access evaluates bindings.
package rolebinding

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

type object = v1alpha1.RoleBinding

// Kind is the kind RoleBinding. It has no finalizer: a binding has no effect any more when the
// delete call returns.
type Kind struct{ policy *access.Policy }

var (
	_ store.DeletionMarker[*object]  = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.CreateValidator[*object] = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.Admitter[*object]        = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
	_ store.Observer[*object]        = (*Kind)(nil)
)

// New creates the kind; policy enforces the bindings.
func New(policy *access.Policy) *Kind { return &Kind{policy} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "RoleBinding", Plural: "rolebindings", Singular: "rolebinding",
		ShortNames: []string{"rb"},
		Strict:     true, // an unknown field may be an intended restriction
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Role", Description: "The assigned role.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.RoleRef.Name },
			},
			printers.Column{
				Name: "Subjects", Type: "integer", Description: "Number of subjects that have the role.",
				Value: func(o runtime.Object) any { return int64(len(o.(*object).Spec.Subjects)) },
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
func (*Kind) NewList() runtime.Object { return &v1alpha1.RoleBindingList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set {
	return fields.Set{"spec.roleRef.name": o.Spec.RoleRef.Name}
}
