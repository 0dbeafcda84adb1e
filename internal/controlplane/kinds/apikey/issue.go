package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/owners"
	"freshet/internal/identity"
)

// MaxKeys is the maximum number of keys of an instance, and of an organization's keys that are
// valid for all of its instances.
const MaxKeys = 10_000

// plainTokenLifetime is how long a plaintext token is kept for the create response. A create call that
// failed after the token was issued, or was a dry run, never fetches it.
const plainTokenLifetime = time.Minute

// Admit implements store.Admitter. It rejects a new key that would give its creator more
// permissions, and keys beyond MaxKeys.
func (k *Kind) Admit(ctx context.Context, key, old *object) error {
	principal := caller.Principal(ctx)
	if old != nil || principal == nil {
		return nil
	}
	if n := k.directory.KeysOf(key.Namespace, key.Spec.InstanceName); n >= MaxKeys {
		holder := "organization " + key.Namespace
		if key.Spec.InstanceName != "" {
			holder = "instance " + key.Spec.InstanceName
		}
		return fmt.Errorf("exceeded quota: %s has %d API keys, limited to %d; delete expired or revoked keys",
			holder, n, MaxKeys)
	}
	if principal.System {
		return nil
	}
	account, ok := k.directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	switch {
	case !ok:
		// The account may later be created as an administrator, and the key would then have its
		// permissions.
		if err := k.authorizer.MayCreateAdmin(principal, key.Namespace); err != nil {
			return fmt.Errorf("service account %s does not exist, and only administrators may create keys before the "+
				"account: %w", key.Spec.ServiceAccountName, err)
		}
		return nil
	case account.System:
		return errors.New("only a system administrator may create keys of the system administrator")
	}
	return k.authorizer.MayActAs(principal, account.Organization, account.Name, account.Admin)
}

// setOwner makes the account the key's owner if it exists.
func (k *Kind) setOwner(key *object) {
	account, ok := k.directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	if !ok {
		return
	}
	owners.Add(key, &metav1.ObjectMeta{Name: account.Name, UID: types.UID(account.UID)}, "ServiceAccount")
}

// obstacle returns why a key cannot be issued, or cannot be used although it is issued; nil if
// there is no reason.
func (k *Kind) obstacle(key *object) *obstacle {
	issued := key.Status.IssuedAt != nil
	instance := key.Spec.InstanceName
	known, exists := k.directory.Instance(key.Namespace, instance)
	_, hasAccount := k.directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	switch {
	case reconcile.Deleting(key):
		return &obstacle{conditions.ReasonDeleting, "the key is being deleted"}
	case !issued && key.Spec.Revoke:
		return &obstacle{reasonRevoked, "the key was revoked before it was issued"}
	case !issued && expired(key):
		return &obstacle{reasonExpired, "the key expired before it was issued"}
	case !issued && !hasAccount:
		return &obstacle{reasonNoAccount, "service account " + key.Spec.ServiceAccountName + " does not exist yet"}
	case issued && k.issuer.Withdrawn(key.Status.KeyID):
		return &obstacle{
			reasonWithdrawn,
			"the signing key of the token was withdrawn, so the token is rejected; delete the key and create another",
		}
	case instance != "" && !exists:
		return &obstacle{reasonNoInstance, "instance " + instance + " does not exist"}
	case instance != "" && !known.APIKeys:
		return &obstacle{reasonNotAccepted, notAccepted(instance)}
	case !issued && key.Spec.EncryptionKey == nil && key.ResourceVersion != "":
		return &obstacle{
			reasonNoEncryptionKey,
			"the token of a key without an encryption key is shown in the create response only, " +
				"and could not be issued then; delete the key and create it again",
		}
	}
	return nil
}

// obstacle is the reason and message of the condition Issued for a key that cannot be used.
type obstacle struct{ reason, message string }

func notAccepted(instance string) string {
	return "instance " + instance + " does not accept API keys; use access tokens, or add apikey to its spec.auth"
}

// issue issues the token of a valid key just before the key is stored. It reports whether it
// succeeded.
func (k *Kind) issue(key *object) bool {
	account, ok := k.directory.Account(key.Namespace, key.Spec.ServiceAccountName)
	if !ok {
		return false // the account was deleted a moment ago
	}
	if err := k.issueToken(key, account); err != nil {
		k.log.Error("issuing an API key failed; retrying", slog.String("key", key.Namespace+"/"+key.Name),
			slog.Any("error", err))
		return false
	}
	return true
}

func (k *Kind) issueToken(key *object, account *identity.Account) error {
	request := identity.KeyRequest{
		Account: account, Name: key.Name, Instance: key.Spec.InstanceName, Metadata: key.Spec.CustomizedMetadata,
	}
	if key.Spec.ExpirationTime != nil {
		request.ExpiresAt = key.Spec.ExpirationTime.Time
	}
	issued, token, err := k.issuer.APIKey(request)
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
		k.plainTokens.Store(uid, token)
		time.AfterFunc(plainTokenLifetime, func() { k.plainTokens.Delete(uid) })
	}
	issuedAt := metav1.NewTime(issued.IssuedAt)
	key.Status.KeyID = issued.ID
	key.Status.TokenHash = issued.Hash
	key.Status.IssuedAt = &issuedAt
	if !issued.ExpiresAt.IsZero() {
		key.Status.ExpiresAt = new(metav1.NewTime(issued.ExpiresAt))
	}
	return nil
}

// revoke records the revocation in the status; the directory enforces it (feed.go).
func revoke(key *object) {
	if key.Status.RevokedAt == nil {
		key.Status.RevokedAt = new(conditions.Now())
	}
}

// Reveal implements store.Revealer. It adds a plaintext token to the response of the call that
// created the key.
func (k *Kind) Reveal(key *object) {
	if token, ok := k.plainTokens.LoadAndDelete(key.UID); ok {
		if secret, ok := token.(identity.Secret); ok {
			key.Status.Token = secret.Reveal()
		}
	}
}
