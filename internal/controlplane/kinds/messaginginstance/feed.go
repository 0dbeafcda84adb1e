package messaginginstance

import (
	"sync"
	"time"

	"freshet/internal/base/revision"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity"
)

// Put implements store.Observer. Clients can get tokens for an instance as soon as it is created,
// and spec.auth applies to API keys as soon as it is written. The informer calls Put again for
// writes of other replicas or of an earlier process.
func (k *Kind) Put(o *object) {
	if o.DeletionTimestamp != nil && reconcile.Deleting(o) {
		k.Remove(o)
		return
	}
	var lifetime time.Duration
	if auth := o.Spec.Auth; auth != nil && auth.OAuth2 != nil {
		lifetime = time.Duration(auth.OAuth2.TokenLifetimeSeconds) * time.Second
	}
	k.lifetimes.mu.Lock()
	defer k.lifetimes.mu.Unlock()
	if k.lifetimes.byInstance.Put(instanceKey{o.Namespace, o.Name}, reconcile.Revision(o), lifetime) {
		k.directory.PutInstance(identity.Instance{
			Organization: o.Namespace, Name: o.Name, APIKeys: o.Spec.Auth == nil || o.Spec.Auth.APIKey != nil,
		})
	}
}

// Remove implements store.Observer. The keys of an instance are rejected as soon as its deletion is
// requested.
func (k *Kind) Remove(o *object) {
	k.lifetimes.mu.Lock()
	defer k.lifetimes.mu.Unlock()
	if k.lifetimes.byInstance.Delete(instanceKey{o.Namespace, o.Name}, reconcile.Revision(o)) {
		k.directory.DeleteInstance(o.Namespace, o.Name)
	}
}

// TokenLifetime returns the lifetime of tokens for an instance; false if the instance does not
// exist.
func (k *Kind) TokenLifetime(organization, instance string) (time.Duration, bool) {
	k.lifetimes.mu.RLock()
	defer k.lifetimes.mu.RUnlock()
	return k.lifetimes.byInstance.Get(instanceKey{organization, instance})
}

type instanceKey struct{ organization, name string }

// tokenLifetimes contains the token lifetime of each instance. mu protects the map; the directory's own
// lock is taken while mu is held.
type tokenLifetimes struct {
	mu         sync.RWMutex
	byInstance *revision.Map[instanceKey, time.Duration]
}

// tombstones is the number of deleted instances that are remembered, to ignore late events.
const tombstones = 1 << 14
