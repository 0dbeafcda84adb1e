package messaginginstance

import (
	"sync"
	"time"

	"freshet/internal/reconcile"
)

// Put implements store.Observer: tokens can be had for an instance as soon as it
// is created. The informer calls it again, for what other replicas or an earlier
// process wrote.
func (k *Kind) Put(o *object) {
	if o.DeletionTimestamp != nil && reconcile.Deleting(o) {
		k.Remove(o)
		return
	}
	l := lifetime{revision: reconcile.Revision(o)}
	if auth := o.Spec.Auth; auth != nil && auth.OAuth2 != nil {
		l.tokens = time.Duration(auth.OAuth2.TokenLifetimeSeconds) * time.Second
	}
	k.known.set(place{o.Namespace, o.Name}, l)
}

// Remove implements store.Observer: the keys of an instance are dead as soon as
// its deletion is requested.
func (k *Kind) Remove(o *object) {
	if k.known.set(place{o.Namespace, o.Name}, lifetime{revision: reconcile.Revision(o), gone: true}) {
		k.directory.DeleteKeysOf(o.Namespace, o.Name)
	}
}

// TokenLifetime says how long tokens for an instance are good; false when there
// is no such instance.
func (k *Kind) TokenLifetime(organization, instance string) (time.Duration, bool) {
	return k.known.get(place{organization, instance})
}

type place struct{ organization, name string }

// lifetime is what is known of an instance.
type lifetime struct {
	tokens   time.Duration
	revision int64
	gone     bool // remembered for a while, against late events
}

// lifetimes keeps the newest that is known of each instance.
type lifetimes struct {
	mu    *sync.RWMutex // guards known
	known map[place]lifetime
}

func newLifetimes() lifetimes {
	return lifetimes{mu: &sync.RWMutex{}, known: make(map[place]lifetime)}
}

// maxKnown bounds the memory of instances that are gone.
const maxKnown = 1 << 14

// set takes what is newer than what is known.
func (l lifetimes) set(at place, news lifetime) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if news.revision < l.known[at].revision {
		return false
	}
	if news.gone && len(l.known) >= maxKnown {
		for other, old := range l.known {
			if old.gone {
				delete(l.known, other)
			}
		}
	}
	l.known[at] = news
	return true
}

func (l lifetimes) get(at place) (time.Duration, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	found, ok := l.known[at]
	return found.tokens, ok && !found.gone
}
