package apikey

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Finalizer holds a key until every surface rejects it.
const Finalizer = "apikey.finalizers.cloud.vendor.io"

type object = v1alpha1.APIKey

// Authorizer decides which callers may have keys of an account; access.Policy implements it.
type Authorizer interface {
	MayActAs(principal *identity.Principal, organization, account string, admin bool) error
	MayCreateAdmin(principal *identity.Principal, organization string) error
	Filter(principal *identity.Principal, permission access.Permission, scope access.Scope) access.Filter
}

// Issuer issues the tokens of keys; identity.Issuer implements it.
type Issuer interface {
	APIKey(request identity.KeyRequest) (identity.Key, identity.Secret, error)
	// Withdrawn reports whether the signing key of an issued token was withdrawn; OnWithdrawal
	// registers a function that is called when that happens to any of them.
	Withdrawn(keyID string) bool
	OnWithdrawal(f func())
}

// Kind is the kind APIKey.
type Kind struct {
	store.Type[object, v1alpha1.APIKeyList]

	issuer     Issuer
	directory  *identity.Directory
	authorizer Authorizer
	log        *slog.Logger

	// plainTokens maps the UID of a key to its plaintext token, between the store's write and the
	// response that contains it. The tokens are never stored.
	plainTokens sync.Map
}

var (
	_ store.Preparer[*object]        = (*Kind)(nil)
	_ store.StatusPreparer[*object]  = (*Kind)(nil)
	_ store.Warner[*object]          = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.CreateValidator[*object] = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.DeletionMarker[*object]  = (*Kind)(nil)
	_ store.Admitter[*object]        = (*Kind)(nil)
	_ store.Finisher[*object]        = (*Kind)(nil)
	_ store.DryRunFinisher[*object]  = (*Kind)(nil)
	_ store.Locator[*object]         = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
	_ store.Revealer[*object]        = (*Kind)(nil)
	_ store.Expecter[*object]        = (*Kind)(nil)
	_ store.Observer[*object]        = (*Kind)(nil)
)

// New creates the kind. issuer issues the keys for the accounts of directory, which Put and Remove
// keep up to date.
func New(issuer Issuer, directory *identity.Directory, authorizer Authorizer, log *slog.Logger) *Kind {
	return &Kind{issuer: issuer, directory: directory, authorizer: authorizer, log: log}
}

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "APIKey", Plural: "apikeys", Singular: "apikey",
		ShortNames:         []string{"ak"},
		Secret:             true,
		Finalizer:          Finalizer,
		DeletesImmediately: true,
		Owner:              "ServiceAccount",
		OwnerField:         "spec.serviceAccountName",
		OwnedByAccount:     true,
		Columns:            columns(),
	}
}

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{
		Organization: o.Namespace, Instance: o.Spec.InstanceName,
		ServiceAccount: o.Spec.ServiceAccountName, APIKey: o.Name,
	}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set {
	return fields.Set{
		"spec.instanceName":       o.Spec.InstanceName,
		"spec.serviceAccountName": o.Spec.ServiceAccountName,
	}
}

// PrepareCreate implements store.Preparer. It makes the account the key's owner.
func (k *Kind) PrepareCreate(_ context.Context, key *object) { k.setOwner(key) }

// PrepareUpdate implements store.Preparer. There is nothing to carry over.
func (*Kind) PrepareUpdate(context.Context, *object, *object) {}

// PrepareStatus implements store.StatusPreparer. The status of a key follows from its spec and the
// issued token, so no caller may write it, not even the system administrator. Finish derives our
// conditions; callers may write other conditions.
func (*Kind) PrepareStatus(_ context.Context, key, old *object) {
	foreign := foreignConditions(key.Status.Conditions)
	key.Status = *old.Status.DeepCopy()
	key.Status.Conditions = append(ownConditions(key.Status.Conditions), foreign...)
}

// Finish implements store.Finisher. It issues the token of a key that has none yet in the same
// write. The conditions describe the current spec, because a change of a key takes effect
// immediately.
func (k *Kind) Finish(key *object) {
	if key.Spec.Revoke {
		revoke(key)
	}
	failed := k.obstacle(key) == nil && key.Status.IssuedAt == nil && !k.issue(key)
	k.describe(key, failed)
}

// FinishDryRun implements store.DryRunFinisher. The key gets the conditions that it would have, but no token is signed:
// no record of it would exist, so nobody could see or revoke it.
func (k *Kind) FinishDryRun(key *object) {
	if key.Spec.Revoke {
		revoke(key)
	}
	k.describe(key, false)
}

// Revokes implements store.Revoker.
func (*Kind) Revokes(key, old *object) bool { return key.Spec.Revoke && !old.Spec.Revoke }

// MarkDeleting implements store.DeletionMarker. A key is rejected when the delete call returns.
func (k *Kind) MarkDeleting(key *object) {
	updated := key.DeepCopy()
	updated.DeletionTimestamp, updated.Generation = new(conditions.Now()), key.Generation+1
	k.describe(updated, false)
	key.Status.Conditions = updated.Status.Conditions
}

// Warnings implements store.Warner.
func (k *Kind) Warnings(_ context.Context, key, old *object) []string {
	if old != nil && !old.Spec.Revoke && key.Spec.Revoke {
		return k.revocationWarnings(key)
	}
	if old != nil || key.Spec.InstanceName == "" {
		return nil
	}
	if _, ok := k.directory.Instance(key.Namespace, key.Spec.InstanceName); ok {
		return nil
	}
	warning := "instance " + key.Spec.InstanceName + " does not exist yet; the key is issued when it is created"
	if key.Spec.EncryptionKey == nil {
		warning = "instance " + key.Spec.InstanceName +
			" does not exist, and the token of a key without spec.encryptionKey is shown " +
			"in the create response only; create the instance, then delete this key and create it again"
	}
	return []string{warning}
}

func columns() []printers.Column {
	return []printers.Column{
		printers.New("Ready", "Whether the key can be used.",
			func(o *object) string { ready, _ := State(o); return ready }),
		printers.New("Reason", "Why the key can be used or not.",
			func(o *object) string { _, reason := State(o); return reason }),
		printers.New("Account", "The service account of the key.",
			func(o *object) string { return o.Spec.ServiceAccountName }),
		printers.New("Instance", "The instance for which the key is valid; * for all.",
			func(o *object) string { return cmp.Or(o.Spec.InstanceName, "*") }),
		printers.NewWide("Expires", "When the key expires.", func(o *object) string {
			if t := o.Spec.ExpirationTime; t != nil {
				return t.UTC().Format(time.RFC3339)
			}
			return "never"
		}),
	}
}
