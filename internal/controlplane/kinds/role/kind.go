// Package role is the kind Role: the custom roles of an organization. It contains the definition
// (kind.go), validation and admission (validate.go), and the synchronization with access.Policy
// (feed.go): the store's write path updates the policy before a call returns, and the informer
// updates it again; reconcile.go then writes the status. ../clusterrole owns predefined roles,
// ../rolebinding assigns roles, and package access evaluates them.
package role

import (
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

type object = v1alpha1.Role

// Kind is the kind Role. It has no finalizer: a role and its bindings have no effect any more when
// the delete call returns.
type Kind struct {
	store.Type[object, v1alpha1.RoleList]
	policy *access.Policy
}

var (
	_ store.NameValidator      = (*Kind)(nil)
	_ store.Validator[*object] = (*Kind)(nil)
	_ store.Admitter[*object]  = (*Kind)(nil)
	_ store.Observer[*object]  = (*Kind)(nil)
)

// New creates the kind; policy enforces the roles.
func New(policy *access.Policy) *Kind { return &Kind{policy: policy} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "Role", Plural: "roles", Singular: "role",
		ShortNames:      []string{"ro"},
		DeletingMessage: conditions.MessageDeleting,
		Strict:          true, // an unknown field may be an intended restriction
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Permissions", "Number of permissions of the role.",
				func(o *object) int64 { return int64(len(o.Spec.Permissions)) }),
			printers.New("Description", "Purpose of the role.", func(o *object) string { return o.Spec.Description }),
		),
	}
}
