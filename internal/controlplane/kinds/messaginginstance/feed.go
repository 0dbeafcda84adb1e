package messaginginstance

import (
	"sync"
	"time"

	"freshet/internal/base/revision"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity"
)

// Put implements store.Observer: tokens can be had for an instance as soon as it
// is created, and what its spec.auth says about API keys holds as soon as it is
// written. The informer calls it again, for what other replicas or an earlier
// process wrote.
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
	if k.lifetimes.known.Put(place{o.Namespace, o.Name}, reconcile.Revision(o), lifetime) {
		k.directory.PutInstance(identity.Instance{
			Organization: o.Namespace, Name: o.Name, APIKeys: o.Spec.Auth == nil || o.Spec.Auth.APIKey != nil,
		})
	}
}

// Remove implements store.Observer: the keys of an instance are dead as soon as
// its deletion is requested.
func (k *Kind) Remove(o *object) {
	k.lifetimes.mu.Lock()
	defer k.lifetimes.mu.Unlock()
	if k.lifetimes.known.Delete(place{o.Namespace, o.Name}, reconcile.Revision(o)) {
		k.directory.DeleteInstance(o.Namespace, o.Name)
	}
}

// TokenLifetime says how long tokens for an instance are good; false when there
// is no such instance.
func (k *Kind) TokenLifetime(organization, instance string) (time.Duration, bool) {
	k.lifetimes.mu.RLock()
	defer k.lifetimes.mu.RUnlock()
	return k.lifetimes.known.Get(place{organization, instance})
}

type place struct{ organization, name string }

// lifetimes holds how long tokens for each instance are good. The lock guards
// known; the directory has its own, which is taken under this one.
type lifetimes struct {
	mu    sync.RWMutex
	known *revision.Map[place, time.Duration]
}

// tombstones is how many deleted instances are remembered, against late events.
const tombstones = 1 << 14
