package apikey

import (
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/loop"
	"freshet/internal/identity"
	"freshet/internal/resources/registry"
)

// Feed keeps the directory's keys as the resources say.
type Feed struct {
	Directory *identity.Directory
}

// Observer is the feed for the store's write path.
func (f Feed) Observer() registry.Observer[*v1alpha1.APIKey] {
	return registry.Observer[*v1alpha1.APIKey]{
		Expected: f.expect,
		Created:  f.Put,
		Updated:  f.Put,
		Deleting: f.Delete,
		Deleted:  f.Delete,
	}
}

// Put tells the directory what a key is now.
func (f Feed) Put(key *v1alpha1.APIKey) {
	if key.Status.KeyID == "" {
		return
	}
	if key.DeletionTimestamp != nil && (key.DeletionGracePeriodSeconds == nil || *key.DeletionGracePeriodSeconds == 0) {
		f.Delete(key)
		return
	}
	f.Directory.PutKey(record(key))
}

// expect lets a key work from the moment that anybody can read that it is
// issued.
func (f Feed) expect(key *v1alpha1.APIKey) {
	if key.Status.KeyID != "" && key.DeletionTimestamp == nil {
		f.Directory.ExpectKey(record(key))
	}
}

func record(key *v1alpha1.APIKey) identity.Key {
	record := identity.Key{
		ID:           key.Status.KeyID,
		Name:         key.Name,
		Organization: key.Namespace,
		Account:      key.Spec.ServiceAccountName,
		AccountUID:   accountUID(key),
		Instance:     key.Spec.InstanceName,
		Hash:         key.Status.TokenHash,
		Revoked:      key.Status.RevokedAt != nil,
		Metadata:     key.Spec.CustomizedMetadata,
		Revision:     loop.Revision(key),
	}
	if t := key.Status.IssuedAt; t != nil {
		record.IssuedAt = t.Time
	}
	if t := key.Status.ExpiresAt; t != nil {
		record.ExpiresAt = t.Time
	}
	return record
}

// Delete ends a key at once.
func (f Feed) Delete(key *v1alpha1.APIKey) {
	if key.Status.KeyID != "" {
		f.Directory.DeleteKey(key.Status.KeyID)
	}
}

func accountUID(key *v1alpha1.APIKey) string {
	for _, ref := range key.OwnerReferences {
		if ref.Kind == "ServiceAccount" && ref.Name == key.Spec.ServiceAccountName {
			return string(ref.UID)
		}
	}
	return ""
}
