// Package user is the kind User: its definition and validation (kind.go), authorization and the
// synchronization with the identity directory (authorize.go), and the reconciler that reports
// whether a user can sign in (reconcile.go). Package invite is its subresource.
// internal/identity/signin implements the sign-in.
package user

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/user/invite"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/validation"
	"freshet/internal/identity"
)

// Finalizer is removed by the reconciler when the user is deleted.
const Finalizer = "user.finalizers.cloud.vendor.io"

// Decisions of an invited person; letter case is ignored.
const (
	InvitationPending  = "pending"
	InvitationAccepted = "accepted"
	InvitationDeclined = "declined"
)

const (
	maxName       = 253
	maxPersonName = 256
)

type object = v1alpha1.User

// Options are the dependencies of the kind.
type Options struct {
	Directory  *identity.Directory
	Authorizer Authorizer
	SignIns    SignIns
	Inviter    invite.Inviter // nil: users/invite is not served
	Links      invite.Links
}

// Kind is the kind User.
type Kind struct {
	store.Type[object, v1alpha1.UserList]
	Options
}

var (
	_ store.Admitter[*object]   = (*Kind)(nil)
	_ store.Observer[*object]   = (*Kind)(nil)
	_ store.Describer[*object]  = (*Kind)(nil)
	_ store.NameValidator       = (*Kind)(nil)
	_ store.Validator[*object]  = (*Kind)(nil)
	_ store.Selectable[*object] = (*Kind)(nil)
	_ store.Extended            = (*Kind)(nil)
)

// New creates the kind.
func New(opts Options) *Kind { return &Kind{Options: opts} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "User", Plural: "users", Singular: "user",
		ShortNames:         []string{"usr"},
		DeletingMessage:    conditions.MessageDeleting,
		Finalizer:          Finalizer,
		DeletesImmediately: true,
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Email", "E-mail address of the person.", func(o *object) string { return o.Spec.Email }),
		),
	}
}

// Subresources implements store.Extended.
func (k *Kind) Subresources() []store.Subresource {
	if k.Inviter == nil {
		return nil
	}
	return []store.Subresource{invite.New(invite.Options{
		Authorizer: k.Authorizer, Inviter: k.Inviter, Links: k.Links,
	})}
}

// Describe implements store.Describer. A new user has no conditions until the controller has seen it
// (docs/spec/resources.md#r17).
func (k *Kind) Describe(o *object) {
	if len(o.Status.Conditions) > 0 {
		o.Status.Conditions, _ = k.describe(o, time.Now())
	}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set { return fields.Set{"spec.email": o.Spec.Email} }

// ValidateName implements store.NameValidator. The name of a user may be an e-mail address, which
// is not a DNS name.
func (*Kind) ValidateName(name string, prefix bool) []string {
	if len(name) > maxName {
		return []string{"must be no more than 253 characters"}
	}
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Email(spec.Child("email"), o.Spec.Email)
	if name := o.Spec.Name; name != nil {
		p := spec.Child("name")
		errs = append(errs, validation.Required(p.Child("first"), name.First)...)
		errs = append(errs, validation.Required(p.Child("last"), name.Last)...)
		errs = append(errs, validation.MaxLength(p.Child("first"), name.First, maxPersonName)...)
		errs = append(errs, validation.MaxLength(p.Child("last"), name.Last, maxPersonName)...)
	}
	if invitation := o.Spec.Invitation; invitation != nil {
		p := spec.Child("invitation")
		errs = append(errs, validation.Required(p.Child("decision"), invitation.Decision)...)
		errs = append(errs, validation.OneOf(p.Child("decision"), strings.ToLower(invitation.Decision),
			InvitationPending, InvitationAccepted, InvitationDeclined)...)
		if invitation.Expiration.IsZero() {
			errs = append(errs, field.Required(p.Child("expiration"), ""))
		}
	}
	return errs
}
