package serviceaccount

import (
	"context"
	"encoding/base64"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Authorizer decides who may do what through an account; access.Policy is one.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission,
		scope access.Scope) (access.Decision, error)
	MayCreateAdmin(who *identity.Principal, organization string) error
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
}

var errSystemAccount = errors.New(
	"it is the system administrator's account, which only the system administrator may create and delete")

// Admit implements store.Admitter: nobody becomes more than they are by way of
// an account. Only administrators make administrators.
func (k *Kind) Admit(ctx context.Context, sa, old *object) error {
	who := caller.Principal(ctx)
	switch {
	case old != nil || who == nil || who.System:
		return nil
	case k.isSystem(sa):
		return errSystemAccount
	case !isAdmin(sa):
		return nil
	}
	return k.Authorizer.MayCreateAdmin(who, sa.Namespace)
}

// ValidateDelete implements store.DeleteValidator: the administrators of one
// organization do not end the one who administers them all.
func (k *Kind) ValidateDelete(ctx context.Context, sa *object, _ *metav1.DeleteOptions) error {
	who := caller.Principal(ctx)
	if who == nil || who.System || !k.isSystem(sa) {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource("serviceaccounts"), sa.Name, errSystemAccount)
}

// PrepareStatus implements store.StatusPreparer: the credentials are the
// service's alone to write: what would replace them would lock the account out and
// could not be undone. The system administrator can ask for new ones, on purpose.
func (*Kind) PrepareStatus(ctx context.Context, sa, old *object) {
	switch {
	case caller.ByService(ctx):
	case sa.Status.PrivateKeyType == v1alpha1.PrivateKeyTypeReset:
		sa.Status.PrivateKeyType, sa.Status.PrivateKeyData = "", ""
	default:
		sa.Status.PrivateKeyType, sa.Status.PrivateKeyData = old.Status.PrivateKeyType, old.Status.PrivateKeyData
	}
}

// Redact implements store.Redacter: it hides the account's secret from those who
// may not see it.
func (k *Kind) Redact(ctx context.Context, sa *object) *object {
	if sa.Status.PrivateKeyData == "" || caller.Principal(ctx) == nil {
		return sa
	}
	shown := sa.DeepCopy()
	shown.Status.PrivateKeyData = ""
	if !k.maySeeSecret(ctx, sa) {
		return shown
	}
	if credentials, err := decode(sa); err == nil { // without what a rotation has replaced
		shown.Status.PrivateKeyData = base64.StdEncoding.EncodeToString(credentials.File())
	}
	return shown
}

// maySeeSecret lets those read an account's secret who may read secrets at all,
// and who gain nothing by it. An account does not read its own: it has them, and
// what is stolen from it must end with what was stolen.
func (k *Kind) maySeeSecret(ctx context.Context, sa *object) bool {
	who := caller.Principal(ctx)
	if who.System {
		return true
	}
	if k.isSystem(sa) {
		return false
	}
	if _, err := k.Authorizer.Authorize(ctx, who, access.ReadCredentials, k.Scope(sa)); err != nil {
		return false
	}
	return k.Authorizer.MayActAs(who, sa.Namespace, sa.Name, isAdmin(sa)) == nil
}
