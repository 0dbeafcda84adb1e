// Package serviceaccountbinding is the kind ServiceAccountBinding: its definition and validation
// (kind.go) and its reconciler (reconcile.go). A binding is ready when the account and the pool
// member both exist. It is deleted with the account, which ../serviceaccount owns.
package serviceaccountbinding

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/owners"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/validation"
	"freshet/internal/identity/access"
)

// Finalizer is removed by the reconciler when the binding is deleted.
const Finalizer = "serviceaccountbinding.finalizers.cloud.vendor.io"

const maxRoles = 64

type object = v1alpha1.ServiceAccountBinding

// Accounts looks up the bound account; it returns false if it does not exist. The store of
// ServiceAccounts implements it.
type Accounts interface {
	Lookup(ctx context.Context, namespace, name string) (*v1alpha1.ServiceAccount, bool)
}

// Kind is the kind ServiceAccountBinding.
type Kind struct {
	store.Type[object, v1alpha1.ServiceAccountBindingList]

	plan     *pools.Plan
	accounts Accounts
}

var (
	_ store.Describer[*object]       = (*Kind)(nil)
	_ store.Preparer[*object]        = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.Locator[*object]         = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
)

// New creates the kind; plan contains the pool members.
func New(plan *pools.Plan, accounts Accounts) *Kind { return &Kind{plan: plan, accounts: accounts} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "ServiceAccountBinding", Plural: "serviceaccountbindings", Singular: "serviceaccountbinding",
		ShortNames:         []string{"sab"},
		DeletingMessage:    conditions.MessageDeleting,
		Finalizer:          Finalizer,
		DeletesImmediately: true,
		Owner:              "ServiceAccount",
		OwnerField:         "spec.serviceAccountName",
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Account", "The service account.",
				func(o *object) string { return o.Spec.ServiceAccountName }),
			printers.New("Member", "The pool member.", func(o *object) string { return o.Spec.PoolMemberRef.Name }),
		),
	}
}

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{Organization: o.Namespace, ServiceAccount: o.Spec.ServiceAccountName}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set {
	return fields.Set{"spec.serviceAccountName": o.Spec.ServiceAccountName}
}

// PrepareCreate implements store.Preparer. It makes the account the binding's owner in the write
// that creates it.
func (k *Kind) PrepareCreate(ctx context.Context, o *object) {
	if account, ok := k.accounts.Lookup(ctx, o.Namespace, o.Spec.ServiceAccountName); ok {
		owners.Add(o, account, "ServiceAccount")
	}
}

// PrepareUpdate implements store.Preparer. There is nothing to carry over.
func (*Kind) PrepareUpdate(context.Context, *object, *object) {}

// Describe implements store.Describer. It writes the conditions if the account is the owner and
// therefore exists; otherwise the reconciler writes them.
func (k *Kind) Describe(o *object) {
	if owners.UID(o, "ServiceAccount", o.Spec.ServiceAccountName) != "" {
		o.Status.Conditions = describe(k.plan, o, true)
	}
}

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Required(spec.Child("serviceAccountName"), o.Spec.ServiceAccountName)
	errs = append(errs, validation.Name(spec.Child("serviceAccountName"), o.Spec.ServiceAccountName)...)
	errs = append(errs, validation.Reference(spec.Child("poolMemberRef"), o.Spec.PoolMemberRef)...)
	if n := len(o.Spec.AWSAssumeRoleARNs); n > maxRoles {
		errs = append(errs, field.TooMany(spec.Child("awsAssumeRoleARNs"), n, maxRoles))
	}
	return errs
}

// ValidateUpdate implements store.UpdateValidator. The spec is immutable; users create a new
// binding instead.
func (*Kind) ValidateUpdate(_ context.Context, o, old *object) field.ErrorList {
	return validation.Immutable(field.NewPath("spec"), o.Spec, old.Spec)
}
