package apikey

import (
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/owners"
	"freshet/internal/identity"
)

// Put implements store.Observer. It updates the key in the directory.
func (k *Kind) Put(key *object) {
	if key.Status.KeyID == "" {
		return
	}
	if reconcile.Ended(key) {
		k.Remove(key)
		return
	}
	k.directory.PutKey(record(key))
}

// Expect implements store.Expecter. It makes a key work before any client can read that it is
// issued.
func (k *Kind) Expect(key *object) {
	if key.Status.KeyID != "" && key.DeletionTimestamp == nil {
		k.directory.ExpectKey(record(key))
	}
}

func record(key *object) identity.Key {
	record := identity.Key{
		ID:           key.Status.KeyID,
		Name:         key.Name,
		Organization: key.Namespace,
		Account:      key.Spec.ServiceAccountName,
		AccountUID:   owners.UID(key, "ServiceAccount", key.Spec.ServiceAccountName),
		Instance:     key.Spec.InstanceName,
		Hash:         key.Status.TokenHash,
		Revoked:      key.Spec.Revoke || key.Status.RevokedAt != nil,
		Metadata:     key.Spec.CustomizedMetadata,
		Revision:     reconcile.Revision(key),
	}
	if t := key.Status.IssuedAt; t != nil {
		record.IssuedAt = t.Time
	}
	if t := key.Status.ExpiresAt; t != nil {
		record.ExpiresAt = t.Time
	}
	return record
}

// Remove implements store.Observer. It ends a key immediately.
func (k *Kind) Remove(key *object) {
	if key.Status.KeyID != "" {
		k.directory.DeleteKey(key.Status.KeyID)
	}
}
