package apikey

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/identity"
	"freshet/internal/resources"
	kind "freshet/internal/resources/registry/apikey"
)

// Reasons of a key's conditions.
const (
	reasonIssued     = "Issued"
	reasonNoAccount  = "ServiceAccountNotFound"
	reasonNotExpired = "NotExpired"
	reasonExpired    = "Expired"
	reasonNotRevoked = "NotRevoked"
	reasonRevoked    = "Revoked"
	reasonFailed     = "IssuingFailed"
)

// Rules decides who may hold keys of which account; access.Policy is one.
type Rules interface {
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
}

// Issuer makes the tokens of API keys while they are written.
type Issuer struct {
	Issuer    *identity.Issuer
	Directory *identity.Directory
	Rules     Rules
	Log       *slog.Logger

	// plain holds tokens between the store's write and the answer that shows
	// them, by the key's UID; they are never stored.
	plain sync.Map
}

// Issuing is what the kind calls.
func (i *Issuer) Issuing() kind.Issuing {
	return kind.Issuing{
		CheckEncryptionKey: checkEncryptionKey,
		CheckAccount:       i.checkAccount,
		Adopt:              func(_ context.Context, key *v1alpha1.APIKey) { i.adopt(key) },
		Issue:              i.issue,
		Revoke:             revoke,
		Reveal:             i.reveal,
	}
}

func checkEncryptionKey(path *field.Path, key *v1alpha1.EncryptionKey) field.ErrorList {
	_, err := identity.ParseEncryptionKey(key.PEM, key.JWK)
	if err == nil {
		return nil
	}
	var at *identity.FieldError
	if errors.As(err, &at) {
		leaf := at.Field[strings.LastIndexByte(at.Field, '.')+1:]
		return field.ErrorList{field.Invalid(path.Child(leaf), field.OmitValueType{}, at.Detail)}
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
}

// checkAccount refuses a key that could only be shown in an answer that comes
// too early, and one that would make its maker more than they are.
func (i *Issuer) checkAccount(ctx context.Context, key *v1alpha1.APIKey) field.ErrorList {
	path := field.NewPath("spec", "serviceAccountName")
	account, ok := i.Directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	if !ok {
		if key.Spec.EncryptionKey == nil {
			return field.ErrorList{field.NotFound(path, key.Spec.ServiceAccountName)}
		}
		return nil
	}
	caller := resources.PrincipalFrom(ctx)
	if caller == nil || caller.System {
		return nil
	}
	if account.System {
		return field.ErrorList{field.Forbidden(path, "only a system administrator may make keys of the system administrator")}
	}
	if err := i.Rules.MayActAs(caller, account.Organization, account.Name, account.Admin); err != nil {
		return field.ErrorList{field.Forbidden(path, err.Error())}
	}
	return nil
}

// adopt makes the account the key's owner, when it exists.
func (i *Issuer) adopt(key *v1alpha1.APIKey) {
	account, ok := i.Directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	if !ok {
		return
	}
	for _, ref := range key.OwnerReferences {
		if ref.Kind == "ServiceAccount" && string(ref.UID) == account.UID {
			return
		}
	}
	yes := true
	key.OwnerReferences = append(key.OwnerReferences, metav1.OwnerReference{
		APIVersion:         v1alpha1.SchemeGroupVersion.String(),
		Kind:               "ServiceAccount",
		Name:               account.Name,
		UID:                types.UID(account.UID),
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	})
}

// issue makes the token, or says in the conditions why not yet. It runs on a
// valid key, just before it is stored.
func (i *Issuer) issue(key *v1alpha1.APIKey) {
	if key.DeletionTimestamp != nil {
		return
	}
	account, ok := i.Directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	if !ok {
		pending(key, reasonNoAccount, "service account "+key.Spec.ServiceAccountName+" does not exist yet")
		return
	}
	if err := i.fill(key, account); err != nil {
		i.Log.Error("issuing an API key failed", slog.String("key", key.Namespace+"/"+key.Name), slog.String("error", err.Error()))
		pending(key, reasonFailed, "the token could not be made; it will be tried again")
		return
	}
	if key.Spec.Revoke {
		revoke(key)
	}
}

func (i *Issuer) fill(key *v1alpha1.APIKey, account *identity.Account) error {
	request := identity.KeyRequest{
		Account: account, Name: key.Name, Instance: key.Spec.InstanceName, Metadata: key.Spec.CustomizedMetadata,
	}
	if key.Spec.ExpirationTime != nil {
		request.ExpiresAt = key.Spec.ExpirationTime.Time
	}
	issued, token, err := i.Issuer.APIKey(request)
	if err != nil {
		return err
	}
	if encryption := key.Spec.EncryptionKey; encryption != nil {
		public, err := identity.ParseEncryptionKey(encryption.PEM, encryption.JWK)
		if err != nil {
			return err
		}
		jwe, err := public.Encrypt(token)
		if err != nil {
			return err
		}
		key.Status.EncryptedToken = &v1alpha1.EncryptedToken{JWE: jwe}
	} else {
		i.plain.Store(key.UID, token)
	}
	issuedAt := metav1.NewTime(issued.IssuedAt)
	key.Status.KeyID = issued.ID
	key.Status.TokenHash = issued.Hash
	key.Status.IssuedAt = &issuedAt
	if !issued.ExpiresAt.IsZero() {
		expiresAt := metav1.NewTime(issued.ExpiresAt)
		key.Status.ExpiresAt = &expiresAt
	}
	set(key, v1alpha1.ConditionIssued, metav1.ConditionTrue, reasonIssued, "the key can be used")
	set(key, v1alpha1.ConditionExpired, metav1.ConditionFalse, reasonNotExpired, "the key has not expired")
	set(key, v1alpha1.ConditionRevoked, metav1.ConditionFalse, reasonNotRevoked, "the key has not been revoked")
	return nil
}

func pending(key *v1alpha1.APIKey, reason, message string) {
	set(key, v1alpha1.ConditionIssued, metav1.ConditionFalse, reason, message)
	set(key, v1alpha1.ConditionExpired, metav1.ConditionFalse, reasonNotExpired, "the key has not expired")
	set(key, v1alpha1.ConditionRevoked, metav1.ConditionFalse, reasonNotRevoked, "the key has not been revoked")
}

// revoke marks a key dead; the store's observer makes it so.
func revoke(key *v1alpha1.APIKey) {
	now := conditions.Now()
	key.Status.RevokedAt = &now
	set(key, v1alpha1.ConditionRevoked, metav1.ConditionTrue, reasonRevoked, "the key has been revoked")
}

// reveal shows a plain token in the answer to the call that made it.
func (i *Issuer) reveal(_ context.Context, key *v1alpha1.APIKey) {
	if token, ok := i.plain.LoadAndDelete(key.UID); ok {
		if secret, ok := token.(identity.Secret); ok {
			key.Status.Token = secret.Reveal()
		}
	}
}

// set writes one of the three conditions, keeping their order.
func set(key *v1alpha1.APIKey, kind string, status metav1.ConditionStatus, reason, message string) {
	c := metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: key.Generation, LastTransitionTime: conditions.Now(),
	}
	for i, old := range key.Status.Conditions {
		if old.Type == kind {
			if old.Status == status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			key.Status.Conditions[i] = c
			return
		}
	}
	key.Status.Conditions = append(key.Status.Conditions, c)
}
