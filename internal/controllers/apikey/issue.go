package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/identity"
	"freshet/internal/resources"
	kind "freshet/internal/resources/registry/apikey"
)

// MaxKeys is how many keys an instance may have, and how many an organization
// may have that are good for all of its instances.
const MaxKeys = 10_000

// Rules decides who may hold keys of which account; access.Policy is one.
type Rules interface {
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
	MayCreateAdmin(who *identity.Principal, organization string) error
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

// plainLife is how long a plain token waits for its answer. A create call that
// failed after the token was made, or was a dry run, never asks for it.
const plainLife = time.Minute

// Issuing is what the kind calls.
func (i *Issuer) Issuing() kind.Issuing {
	return kind.Issuing{
		CheckEncryptionKey: checkEncryptionKey,
		CheckAccount:       i.checkAccount,
		MayHold:            i.mayHold,
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
	var wrong *identity.InputError
	if !errors.As(err, &wrong) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	switch wrong.Input {
	case identity.InputPEM:
		path = path.Child("pem")
	case identity.InputJWK:
		path = path.Child("jwk")
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, wrong.Detail)}
}

// checkAccount refuses a key that could only be shown in an answer that comes
// too early.
func (i *Issuer) checkAccount(_ context.Context, key *v1alpha1.APIKey) field.ErrorList {
	if key.Spec.EncryptionKey != nil {
		return nil
	}
	if _, ok := i.Directory.Account(key.Namespace, key.Spec.ServiceAccountName); ok {
		return nil
	}
	return field.ErrorList{field.NotFound(field.NewPath("spec", "serviceAccountName"), key.Spec.ServiceAccountName)}
}

// mayHold refuses a key that would make its maker more than they are, and one
// too many.
func (i *Issuer) mayHold(ctx context.Context, key *v1alpha1.APIKey) error {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	if n := i.Directory.KeysOf(key.Namespace, key.Spec.InstanceName); n >= MaxKeys {
		where := "organization " + key.Namespace
		if key.Spec.InstanceName != "" {
			where = "instance " + key.Spec.InstanceName
		}
		return fmt.Errorf("exceeded quota: %s has %d API keys, limited to %d; delete some that have expired or been revoked", where, n, MaxKeys)
	}
	if caller.System {
		return nil
	}
	account, ok := i.Directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	switch {
	case !ok:
		// Nobody knows yet what the account will be. It may be made an
		// administrator, and the key would be one then.
		if err := i.Rules.MayCreateAdmin(caller, key.Namespace); err != nil {
			return fmt.Errorf("service account %s does not exist, and only administrators make keys before accounts: %w", key.Spec.ServiceAccountName, err)
		}
		return nil
	case account.System:
		return errors.New("only a system administrator may make keys of the system administrator")
	}
	return i.Rules.MayActAs(caller, account.Organization, account.Name, account.Admin)
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

// issue makes the token, or says in the conditions why not. It runs on a valid
// key, just before it is stored.
func (i *Issuer) issue(key *v1alpha1.APIKey) {
	if key.DeletionTimestamp != nil {
		return
	}
	account, ok := i.Directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	switch {
	case key.Spec.Revoke:
		revoke(key)
		describe(key, false, reasonRevoked, "the key was revoked before it was issued")
	case overdue(key):
		describe(key, false, reasonExpired, "the key expired before it was issued")
	case !ok:
		describe(key, false, reasonNoAccount, "service account "+key.Spec.ServiceAccountName+" does not exist yet")
	default:
		if err := i.fill(key, account); err != nil {
			i.Log.Error("issuing an API key failed", slog.String("key", key.Namespace+"/"+key.Name), slog.String("error", err.Error()))
			describe(key, false, reasonFailed, "the token could not be made; it will be tried again")
			return
		}
		describe(key, true, reasonIssued, "the key has been issued")
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
		uid := key.UID
		i.plain.Store(uid, token)
		time.AfterFunc(plainLife, func() { i.plain.Delete(uid) })
	}
	issuedAt := metav1.NewTime(issued.IssuedAt)
	key.Status.KeyID = issued.ID
	key.Status.TokenHash = issued.Hash
	key.Status.IssuedAt = &issuedAt
	if !issued.ExpiresAt.IsZero() {
		expiresAt := metav1.NewTime(issued.ExpiresAt)
		key.Status.ExpiresAt = &expiresAt
	}
	return nil
}

// revoke marks a key dead; the store's observer makes it so.
func revoke(key *v1alpha1.APIKey) {
	if key.Status.RevokedAt != nil {
		return
	}
	now := conditions.Now()
	key.Status.RevokedAt = &now
	if len(key.Status.Conditions) > 0 { // else describe writes all three, in their order
		set(key, v1alpha1.ConditionRevoked, metav1.ConditionTrue, reasonRevoked, "the key has been revoked")
	}
}

// reveal shows a plain token in the answer to the call that made it.
func (i *Issuer) reveal(_ context.Context, key *v1alpha1.APIKey) {
	if token, ok := i.plain.LoadAndDelete(key.UID); ok {
		if secret, ok := token.(identity.Secret); ok {
			key.Status.Token = secret.Reveal()
		}
	}
}
