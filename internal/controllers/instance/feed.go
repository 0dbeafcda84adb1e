package instance

import (
	"sync"
	"time"

	"freshet/api/v1alpha1"
	"freshet/internal/controllers/loop"
	"freshet/internal/identity"
	"freshet/internal/resources/registry"
)

// Feed tells identity of instances, from the store's write path and again from
// the informer: tokens can be had for an instance as soon as it is created, and
// its keys are dead as soon as its deletion is requested.
type Feed struct {
	directory *identity.Directory

	mu    sync.RWMutex
	known map[place]entry
}

type place struct{ organization, name string }

type entry struct {
	lifetime time.Duration
	revision int64
	gone     bool // remembered for a while, against late events
}

// NewFeed makes a feed of nothing.
func NewFeed(directory *identity.Directory) *Feed {
	return &Feed{directory: directory, known: make(map[place]entry)}
}

// Observer is the feed for the store's write path.
func (f *Feed) Observer() registry.Observer[*v1alpha1.MessagingInstance] {
	return registry.Observer[*v1alpha1.MessagingInstance]{Created: f.Put, Updated: f.Put, Deleting: f.Remove, Deleted: f.Remove}
}

// Put tells what an instance is now.
func (f *Feed) Put(o *v1alpha1.MessagingInstance) {
	if o.DeletionTimestamp != nil && loop.Deleting(o) {
		f.Remove(o)
		return
	}
	e := entry{revision: loop.Revision(o)}
	if auth := o.Spec.Auth; auth != nil && auth.OAuth2 != nil {
		e.lifetime = time.Duration(auth.OAuth2.TokenLifetimeSeconds) * time.Second
	}
	f.set(place{o.Namespace, o.Name}, e)
}

// Remove ends an instance, and its keys with it.
func (f *Feed) Remove(o *v1alpha1.MessagingInstance) {
	if f.set(place{o.Namespace, o.Name}, entry{revision: loop.Revision(o), gone: true}) {
		f.directory.DeleteKeysOf(o.Namespace, o.Name)
	}
}

// maxKnown bounds the memory of instances that are gone.
const maxKnown = 1 << 14

// set takes what is newer than what is known.
func (f *Feed) set(at place, e entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.revision < f.known[at].revision {
		return false
	}
	if e.gone && len(f.known) >= maxKnown {
		for other, old := range f.known {
			if old.gone {
				delete(f.known, other)
			}
		}
	}
	f.known[at] = e
	return true
}

// TokenLifetime implements tokenapi.Instances.
func (f *Feed) TokenLifetime(organization, instance string) (time.Duration, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e, ok := f.known[place{organization, instance}]
	return e.lifetime, ok && !e.gone
}
