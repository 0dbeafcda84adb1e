// Package rolebinding is the kind RoleBinding: its definition (kind.go), validation and admission
// (validate.go), and the synchronization with access.Policy (feed.go, convert.go): the store's
// write path updates the policy before a call returns, and the informer updates it again;
// reconcile.go then writes the status. Package access evaluates bindings.
package rolebinding

import (
	"k8s.io/apimachinery/pkg/fields"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

type object = v1alpha1.RoleBinding

// Kind is the kind RoleBinding. It has no finalizer: a binding has no effect any more when the
// delete call returns.
type Kind struct {
	store.Type[object, v1alpha1.RoleBindingList]
	policy *access.Policy
}

var (
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.CreateValidator[*object] = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.Admitter[*object]        = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
	_ store.Observer[*object]        = (*Kind)(nil)
)

// New creates the kind; policy enforces the bindings.
func New(policy *access.Policy) *Kind { return &Kind{policy: policy} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "RoleBinding", Plural: "rolebindings", Singular: "rolebinding",
		ShortNames:      []string{"rb"},
		DeletingMessage: conditions.MessageDeleting,
		Strict:          true, // an unknown field may be an intended restriction
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Role", "The assigned role.", func(o *object) string { return o.Spec.RoleRef.Name }),
			printers.New("Subjects", "Number of subjects that have the role.",
				func(o *object) int64 { return int64(len(o.Spec.Subjects)) }),
		),
	}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set {
	return fields.Set{"spec.roleRef.name": o.Spec.RoleRef.Name}
}
