package serviceaccount

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/serviceaccount/rotation"
	"freshet/internal/controlplane/kinds/serviceaccount/tokens"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/validation"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Finalizer holds an account until its keys and bindings are deleted.
const Finalizer = "serviceaccount.finalizers.cloud.vendor.io"

type object = v1alpha1.ServiceAccount

// Options are the dependencies of the kind.
type Options struct {
	Issuer     *identity.Issuer
	Directory  *identity.Directory
	Sealer     *identity.Sealer
	Authorizer Authorizer
	// Audiences of the tokens that serviceaccounts/token issues; it is not served without addresses.
	Audiences identity.Audiences
	// SystemOrganization and SystemAccount name the system administrator.
	SystemOrganization string
	SystemAccount      string
	Log                *slog.Logger
}

// Kind is the kind ServiceAccount.
type Kind struct {
	store.Type[object, v1alpha1.ServiceAccountList]
	Options
}

var (
	_ store.StatusPreparer[*object]  = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.DeleteValidator[*object] = (*Kind)(nil)
	_ store.Admitter[*object]        = (*Kind)(nil)
	_ store.Locator[*object]         = (*Kind)(nil)
	_ store.Redacter[*object]        = (*Kind)(nil)
	_ store.Expecter[*object]        = (*Kind)(nil)
	_ store.Observer[*object]        = (*Kind)(nil)
	_ store.Extended                 = (*Kind)(nil)
)

// New creates the kind.
func New(opts Options) *Kind { return &Kind{Options: opts} }

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "ServiceAccount", Plural: "serviceaccounts", Singular: "serviceaccount",
		ShortNames:      []string{"sa"},
		DeletingMessage: "its keys and bindings are being deleted first",
		Secret:          true,
		Finalizer:       Finalizer,
		Columns: append(
			printers.Conditions(func(o *object) []v1alpha1.Condition { return o.Status.Conditions }),
			printers.New("Admin", "Whether the account administers its organization.", isAdmin),
		),
	}
}

// Subresources implements store.Extended.
func (k *Kind) Subresources() []store.Subresource {
	list := []store.Subresource{rotation.New(rotation.Options{
		Issuer: k.Issuer, Directory: k.Directory, Sealer: k.Sealer, Authorizer: k.Authorizer,
	})}
	if len(k.Audiences.Addresses) > 0 {
		list = append(list, tokens.New(tokens.Options{
			Issuer: k.Issuer, Directory: k.Directory, Audiences: k.Audiences, Authorizer: k.Authorizer,
		}))
	}
	return list
}

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{Organization: o.Namespace, ServiceAccount: o.Name}
}

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
	return validation.OneOf(rolePath(), role(o), v1alpha1.ServiceAccountRoleAdmin)
}

// ValidateUpdate implements store.UpdateValidator. Whether an account is an administrator is
// decided at creation and cannot change.
func (*Kind) ValidateUpdate(_ context.Context, o, old *object) field.ErrorList {
	return validation.Immutable(rolePath(), role(o), role(old))
}

// isAdmin reports whether the account administers its organization.
func isAdmin(o *object) bool { return role(o) == v1alpha1.ServiceAccountRoleAdmin }

// isSystem reports whether it is the system administrator's account.
func (k *Kind) isSystem(o *object) bool {
	return o.Namespace == k.SystemOrganization && o.Name == k.SystemAccount
}

func role(o *object) string { return o.Annotations[v1alpha1.AnnotationServiceAccountRole] }

func rolePath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationServiceAccountRole)
}
