package budget

import (
	"context"
	"sync"
)

// usage counts the stored objects of every organization. The count includes writes in progress, so
// that concurrent callers cannot exceed a limit together.
type usage struct {
	loaded chan struct{} // closed when everything stored was counted once
	once   sync.Once

	mu            sync.Mutex // protects the fields below
	objects       map[string]stored
	organizations map[string]*account
}

// stored is the counted state of one object.
type stored struct {
	organization string
	size         int64
	revision     int64
}

// account is the usage of one organization, and the additional usage that its current writes hold.
type account struct {
	Usage
	held Usage
}

// hold is the usage that one write will add.
type hold struct {
	key          string
	organization string
	size         int64
	adds         Usage
}

func newUsage() *usage {
	return &usage{loaded: make(chan struct{}), objects: map[string]stored{}, organizations: map[string]*account{}}
}

// wait returns when the usage is known.
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

// growth returns by how many bytes a write makes an object larger.
func (u *usage) growth(key string, size int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return size - u.objects[key].size
}

// hold reserves the usage that a write of this size adds, unless the limits would be exceeded.
func (u *usage) hold(h *hold, key string, p objectKey, size int64, limits Limits) (err error) {
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
	a := u.accountLocked(p.organization)
	used := Usage{a.Objects + a.held.Objects, a.Bytes + a.held.Bytes}
	switch {
	case adds.Objects > 0 && limits.Objects > 0 && used.Objects+adds.Objects > limits.Objects:
		err = p.exceeded("objects", adds.Objects, used.Objects, limits.Objects)
	case adds.Bytes > 0 && limits.Bytes > 0 && used.Bytes+adds.Bytes > limits.Bytes:
		err = p.exceeded("bytes", adds.Bytes, used.Bytes, limits.Bytes)
	}
	if err != nil {
		u.dropEmptyLocked(p.organization)
		*h = hold{}
		return err
	}
	h.organization, h.adds = p.organization, adds
	a.held.Objects += adds.Objects
	a.held.Bytes += adds.Bytes
	return nil
}

// release returns the reserved usage of a write.
func (u *usage) release(h *hold) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.releaseLocked(h)
}

func (u *usage) releaseLocked(h *hold) {
	if h.organization != "" {
		a := u.accountLocked(h.organization)
		a.held.Objects -= h.adds.Objects
		a.held.Bytes -= h.adds.Bytes
		u.dropEmptyLocked(h.organization)
	}
	*h = hold{}
}

// settle converts the reserved usage of a write into stored usage.
func (u *usage) settle(h *hold, p objectKey, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key, size := h.key, h.size
	u.releaseLocked(h)
	u.putLocked(key, p, size, revision)
}

// put records that an object was stored; older revisions are ignored.
func (u *usage) put(key string, p objectKey, size, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.putLocked(key, p, size, revision)
}

func (u *usage) putLocked(key string, p objectKey, size, revision int64) {
	before, exists := u.objects[key]
	if !p.counted() || exists && before.revision > revision {
		return
	}
	a := u.accountLocked(p.organization)
	if !exists {
		a.Objects++
	}
	a.Bytes += size - before.size
	u.objects[key] = stored{p.organization, size, revision}
}

// remove records that an object was deleted, unless it was stored again since.
func (u *usage) remove(key string, revision int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, exists := u.objects[key]
	if !exists || before.revision > revision {
		return
	}
	delete(u.objects, key)
	a := u.accountLocked(before.organization)
	a.Objects--
	a.Bytes -= before.size
	u.dropEmptyLocked(before.organization)
}

// replace sets the objects that were read at a revision, and keeps only newer ones of the previous
// state.
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
		u.dropEmptyLocked(name)
	}
	for _, object := range objects {
		a := u.accountLocked(object.organization)
		a.Objects++
		a.Bytes += object.size
	}
	u.once.Do(func() { close(u.loaded) })
}

// accountLocked returns the account of an organization, and creates it if necessary. It is called with mu
// held.
func (u *usage) accountLocked(organization string) *account {
	a, ok := u.organizations[organization]
	if !ok {
		a = &account{}
		u.organizations[organization] = a
	}
	return a
}

// dropEmptyLocked drops the account of an organization that has no usage. It is called with mu held.
func (u *usage) dropEmptyLocked(organization string) {
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
