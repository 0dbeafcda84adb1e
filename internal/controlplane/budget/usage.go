package budget

import (
	"context"
	"sync"
)

// usage counts what every organization has stored. It is the sum of what is known
// to be stored and of what is being written, so that no number of callers at the
// same time gets past a limit.
type usage struct {
	loaded chan struct{} // closed when everything stored was counted once
	once   sync.Once

	mu            sync.Mutex // guards what follows
	objects       map[string]stored
	organizations map[string]*account
}

// stored is what is known of one object.
type stored struct {
	organization string
	size         int64
	revision     int64
}

// account is what one organization has, and what it is about to have on top.
type account struct {
	Usage
	held Usage
}

// hold is what one write is about to add.
type hold struct {
	key          string
	organization string
	size         int64
	adds         Usage
}

func newUsage() *usage {
	return &usage{loaded: make(chan struct{}), objects: map[string]stored{}, organizations: map[string]*account{}}
}

// wait returns when usage is known.
func (u *usage) wait(ctx context.Context) error {
	select {
	case <-u.loaded:
		return nil
	default:
	}
	select {
	case <-u.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// growth is by how many bytes an object becomes larger.
func (u *usage) growth(key string, size int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return size - u.objects[key].size
}

// hold takes what an object of this size adds to what is stored, unless that is
// more than the limits allow.
func (u *usage) hold(h *hold, key string, p place, size int64, limits Limits) (err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	*h = hold{key: key, size: size}
	if !p.counted() {
		return nil
	}
	before, exists := u.objects[key]
	adds := Usage{Bytes: max(size-before.size, 0)}
	if !exists {
		adds.Objects = 1
	}
	a := u.account(p.organization)
	used := Usage{a.Objects + a.held.Objects, a.Bytes + a.held.Bytes}
	switch {
	case adds.Objects > 0 && limits.Objects > 0 && used.Objects+adds.Objects > limits.Objects:
		err = p.exceeded("objects", adds.Objects, used.Objects, limits.Objects)
	case adds.Bytes > 0 && limits.Bytes > 0 && used.Bytes+adds.Bytes > limits.Bytes:
		err = p.exceeded("bytes", adds.Bytes, used.Bytes, limits.Bytes)
	}
	if err != nil {
		u.forget(p.organization)
		*h = hold{}
		return err
	}
	h.organization, h.adds = p.organization, adds
	a.held.Objects += adds.Objects
	a.held.Bytes += adds.Bytes
	return nil
}

// release gives back what a write held.
func (u *usage) release(h *hold) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.releaseLocked(h)
}

func (u *usage) releaseLocked(h *hold) {
	if h.organization != "" {
		a := u.account(h.organization)
		a.held.Objects -= h.adds.Objects
		a.held.Bytes -= h.adds.Bytes
		u.forget(h.organization)
	}
	*h = hold{}
}

// settle turns what a write held into what is stored.
func (u *usage) settle(h *hold, p place, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key, size := h.key, h.size
	u.releaseLocked(h)
	u.putLocked(key, p, size, revision)
}

// put notes that an object was stored; older news are passed over.
func (u *usage) put(key string, p place, size, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.putLocked(key, p, size, revision)
}

func (u *usage) putLocked(key string, p place, size, revision int64) {
	before, exists := u.objects[key]
	if !p.counted() || exists && before.revision > revision {
		return
	}
	a := u.account(p.organization)
	if !exists {
		a.Objects++
	}
	a.Bytes += size - before.size
	u.objects[key] = stored{p.organization, size, revision}
}

// remove notes that an object is gone, unless it was stored again since.
func (u *usage) remove(key string, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, exists := u.objects[key]
	if !exists || before.revision > revision {
		return
	}
	delete(u.objects, key)
	a := u.account(before.organization)
	a.Objects--
	a.Bytes -= before.size
	u.forget(before.organization)
}

// replace puts what was read at a revision in the place of all that was known
// before, except for what is newer.
func (u *usage) replace(objects map[string]stored, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, object := range u.objects {
		if object.revision > revision {
			objects[key] = object
		}
	}
	u.objects = objects
	for name, a := range u.organizations {
		a.Usage = Usage{}
		u.forget(name)
	}
	for _, object := range objects {
		a := u.account(object.organization)
		a.Objects++
		a.Bytes += object.size
	}
	u.once.Do(func() { close(u.loaded) })
}

// account finds that of an organization, or makes one. It is called with mu held.
func (u *usage) account(organization string) *account {
	a, ok := u.organizations[organization]
	if !ok {
		a = &account{}
		u.organizations[organization] = a
	}
	return a
}

// forget drops the account of an organization that has nothing. It is called with
// mu held.
func (u *usage) forget(organization string) {
	if a := u.organizations[organization]; a != nil && *a == (account{}) {
		delete(u.organizations, organization)
	}
}

func (u *usage) all() map[string]Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make(map[string]Usage, len(u.organizations))
	for name, a := range u.organizations {
		out[name] = a.Usage
	}
	return out
}
