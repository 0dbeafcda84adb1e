package identity

import "maps"

// Instance is what identity has to know of a messaging instance.
type Instance struct {
	Organization string
	Name         string
	APIKeys      bool // whether its data planes accept API keys
}

// PutInstance adds or updates an instance; what it says about API keys is in
// force when it returns. Reports must come in the order of the writes.
func (d *Directory) PutInstance(i Instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := name{i.Organization, i.Name}
	d.instances[at] = i
	d.refuseKeysLocked(at, !i.APIKeys)
}

// DeleteInstance forgets an instance and ends every key that is good for it
// alone. Call it as soon as the instance's deletion is requested: another one of
// the same name must not be open to keys of this one.
func (d *Directory) DeleteInstance(organization, instance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := name{organization, instance}
	delete(d.instances, at)
	d.refuseKeysLocked(at, false)
	d.dropKeysOfLocked(organization, instance)
}

// Instance finds an instance.
func (d *Directory) Instance(organization, instance string) (Instance, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	i, ok := d.instances[name{organization, instance}]
	return i, ok
}

// refuseKeysLocked is called with mu held. The set is replaced, not changed: the
// verifier reads it without the lock.
func (d *Directory) refuseKeysLocked(at name, refuse bool) {
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

// refusesKeys says whether an instance is known not to accept API keys.
func (d *Directory) refusesKeys(at name) bool {
	_, refused := (*d.refusing.Load())[at]
	return refused
}
