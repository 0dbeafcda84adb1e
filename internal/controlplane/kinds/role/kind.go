// Package role is the kind Role: the roles that an organization makes itself. What
// one is (kind.go), what it may say and who may write it (validate.go), and how it
// comes into force (feed.go): access.Policy is told in the store's write path,
// before a call answers, and again from the informer; reconcile.go then says so in
// status. Predefined roles are next door, in ../clusterrole; who gets a role is
// said in ../rolebinding. What a role means is decided in access.
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

// Kind is the kind Role. It has no finalizer: a role is out of force the moment
// the delete call returns, and its bindings with it.
type Kind struct{ policy *access.Policy }

var (
	_ store.DeletionMarker[*object] = (*Kind)(nil)
	_ store.NameValidator           = (*Kind)(nil)
	_ store.Validator[*object]      = (*Kind)(nil)
	_ store.Admitter[*object]       = (*Kind)(nil)
	_ store.Observer[*object]       = (*Kind)(nil)
)

// New makes the kind; roles come into force in the policy.
func New(policy *access.Policy) *Kind { return &Kind{policy} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "Role", Plural: "roles", Singular: "role",
		ShortNames: []string{"ro"},
		Strict:     true, // an unknown field may be a restriction that was meant
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
