package serviceaccount

import (
	"context"
	"encoding/base64"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/subresource"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Authorizer decides what callers may do with an account; access.Policy implements it.
type Authorizer interface {
	subresource.AccountAuthorizer
	MayCreateAdmin(principal *identity.Principal, organization string) error
}

var errSystemAccount = errors.New(
	"account is that of the system administrator; only the system administrator may create and delete it")

// Admit implements store.Admitter. It prevents privilege escalation: only administrators may create
// administrators.
func (k *Kind) Admit(ctx context.Context, sa, old *object) error {
	principal := caller.Principal(ctx)
	switch {
	case old != nil || principal == nil || principal.System:
		return nil
	case k.isSystem(sa):
		return errSystemAccount
	case !isAdmin(sa):
		return nil
	}
	return k.Authorizer.MayCreateAdmin(principal, sa.Namespace)
}

// ValidateDelete implements store.DeleteValidator. Only a system administrator may delete the
// system administrator's account.
func (k *Kind) ValidateDelete(ctx context.Context, sa *object, _ *metav1.DeleteOptions) error {
	principal := caller.Principal(ctx)
	if principal == nil || principal.System || !k.isSystem(sa) {
		return nil
	}
	return apierrors.NewForbidden(groupResource, sa.Name, errSystemAccount)
}

// PrepareStatus implements store.StatusPreparer. Only the service may write credentials, because
// replaced credentials would lock the account out and could not be restored. The system
// administrator can request new ones explicitly (PrivateKeyTypeReset).
func (*Kind) PrepareStatus(ctx context.Context, sa, old *object) {
	switch {
	case caller.ByService(ctx):
	case sa.Status.PrivateKeyType == v1alpha1.PrivateKeyTypeReset:
		sa.Status.PrivateKeyType, sa.Status.PrivateKeyData = "", ""
	default:
		sa.Status.PrivateKeyType, sa.Status.PrivateKeyData = old.Status.PrivateKeyType, old.Status.PrivateKeyData
	}
}

// Redact implements store.Redacter. It hides the account's secret from callers that may not read
// it.
func (k *Kind) Redact(ctx context.Context, sa *object) *object {
	if sa.Status.PrivateKeyData == "" || caller.Principal(ctx) == nil {
		return sa
	}
	shown := sa.DeepCopy()
	shown.Status.PrivateKeyData = ""
	if !k.maySeeSecret(ctx, sa) {
		return shown
	}
	if credentials, err := decode(sa); err == nil { // the file without the replaced credentials
		shown.Status.PrivateKeyData = base64.StdEncoding.EncodeToString(credentials.File())
	}
	return shown
}

// maySeeSecret allows callers that may read credentials and could act as the account anyway. An
// account gets no exception for its own secret: a stolen token must not give access to a credential
// that outlives it.
func (k *Kind) maySeeSecret(ctx context.Context, sa *object) bool {
	principal := caller.Principal(ctx)
	if principal.System {
		return true
	}
	if k.isSystem(sa) {
		return false
	}
	if _, err := k.Authorizer.Authorize(ctx, principal, access.ReadCredentials, k.Scope(sa)); err != nil {
		return false
	}
	return k.Authorizer.MayActAs(principal, sa.Namespace, sa.Name, isAdmin(sa)) == nil
}
