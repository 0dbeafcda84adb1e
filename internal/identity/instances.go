package identity

import "maps"

// Instance is the part of a messaging instance that identity needs.
type Instance struct {
	Organization string
	Name         string
	APIKeys      bool // whether its data planes accept API keys
}

// PutInstance adds or updates an instance. i.APIKeys is in force when PutInstance returns.
// Calls must be in the order of the writes.
func (d *Directory) PutInstance(i Instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := name{i.Organization, i.Name}
	d.instances[at] = i
	d.setRejectsKeysLocked(at, !i.APIKeys)
}

// DeleteInstance deletes an instance and all keys that are only for it. Call it as soon as
// deletion is requested: a new instance with the same name must not accept keys of this one.
func (d *Directory) DeleteInstance(organization, instance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := name{organization, instance}
	delete(d.instances, at)
	d.setRejectsKeysLocked(at, false)
	d.dropKeysOfLocked(organization, instance)
}

// Instance returns an instance by name.
func (d *Directory) Instance(organization, instance string) (Instance, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	i, ok := d.instances[name{organization, instance}]
	return i, ok
}

// setRejectsKeysLocked adds an instance to, or removes it from, the instances that reject API
// keys. It replaces the set, because the verifier reads the set without the lock.
func (d *Directory) setRejectsKeysLocked(at name, refuse bool) {
	old := *d.refusing.Load()
	if _, refused := old[at]; refused == refuse {
		return
	}
	set := maps.Clone(old)
	if refuse {
		set[at] = struct{}{}
	} else {
		delete(set, at)
	}
	d.refusing.Store(&set)
}

// rejectsKeys reports whether an instance rejects API keys.
func (d *Directory) rejectsKeys(at name) bool {
	_, refused := (*d.refusing.Load())[at]
	return refused
}
