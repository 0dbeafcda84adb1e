package identity

import (
	"maps"
	"sync/atomic"
	"time"

	"freshet/internal/base/revision"
)

// Key is what identity has to know of an API key: everything but the key.
type Key struct {
	ID           string // the token's jti
	Name         string // the APIKey resource
	Organization string
	Account      string // the service account's name
	AccountUID   string // and its uid: a recreated account does not inherit keys
	Instance     string // "" for every instance of the organization
	Hash         string // of HashToken
	IssuedAt     time.Time
	ExpiresAt    time.Time // zero for never
	Revoked      bool
	Metadata     map[string]string
	Revision     int64 // of the resource; the newest wins (package newest)
}

func (k *Key) equal(o *Key) bool {
	return k.ID == o.ID && k.Name == o.Name && k.Organization == o.Organization && k.Account == o.Account &&
		k.AccountUID == o.AccountUID && k.Instance == o.Instance && k.Hash == o.Hash &&
		k.IssuedAt.Equal(o.IssuedAt) && k.ExpiresAt.Equal(o.ExpiresAt) && k.Revoked == o.Revoked &&
		maps.Equal(k.Metadata, o.Metadata)
}

// keyRecord is what cached tokens point to, as accountRecord is.
type keyRecord struct {
	expected bool                // and not stored yet; under Directory.mu
	live     atomic.Pointer[Key] // nil once deleted; written under Directory.mu
	revoked  atomic.Bool         // never unset: revocation is one-way (docs/spec/resources.md#r5)
}

// PutKey adds or updates an API key. Revoked is one-way: once seen, a later
// Put without it changes nothing about that.
func (d *Directory) PutKey(k Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rec, known := d.keys.Get(k.ID)
	if !d.keys.Accepts(k.ID, k.Revision) {
		if known && k.Revoked {
			rec.revokeLocked()
		}
		return
	}
	switch {
	case !known:
		rec = &keyRecord{}
		d.keyCount[name{k.Organization, k.Instance}]++
	case rec.expected:
		rec.expected = false
		d.expected--
		d.keyCount[name{k.Organization, k.Instance}]++
	}
	d.keys.Put(k.ID, k.Revision, rec)
	k.Revision = 0 // a mere resync must not look like a change to cached tokens
	if k.Revoked {
		rec.revoked.Store(true)
	}
	k.Revoked = rec.revoked.Load()
	k.Metadata = maps.Clone(k.Metadata)
	if old := rec.live.Load(); old == nil || !old.equal(&k) {
		rec.live.Store(&k)
	}
}

// revokeLocked is called with the directory's mu held, on a key that is there.
func (r *keyRecord) revokeLocked() {
	r.revoked.Store(true)
	k := *r.live.Load()
	k.Revoked = true
	r.live.Store(&k)
}

// expectation is how long an expected key may take to be stored.
const expectation = time.Minute

// ExpectKey lets a key in that is about to be issued: readers may see it a
// moment before PutKey is called. One that does not come is forgotten, and none
// is counted before it has come: calls that fail must not use up a quota.
func (d *Directory) ExpectKey(k Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rec := &keyRecord{expected: true}
	if _, known := d.keys.Get(k.ID); known || !d.keys.Put(k.ID, 0, rec) {
		return
	}
	k.Revision = 0
	k.Metadata = maps.Clone(k.Metadata)
	rec.revoked.Store(k.Revoked)
	rec.live.Store(&k)
	d.expected++
	time.AfterFunc(expectation, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if now, _ := d.keys.Get(k.ID); now == rec && rec.expected {
			d.dropKeyLocked(k.ID, rec, 0)
		}
	})
}

// DeleteKey ends a key and forgets it.
func (d *Directory) DeleteKey(id string) {
	if id == "" {
		return // of a resource whose key was never issued
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	rec, _ := d.keys.Get(id)
	d.dropKeyLocked(id, rec, revision.Forever)
}

// dropKeysOfLocked ends every key that is good for one instance. It is called
// with mu held.
func (d *Directory) dropKeysOfLocked(organization, instance string) {
	if instance == "" || (d.keyCount[name{organization, instance}] == 0 && d.expected == 0) {
		return
	}
	for id, rec := range d.keys.All() {
		if k := rec.live.Load(); k.Organization == organization && k.Instance == instance {
			d.dropKeyLocked(id, rec, revision.Forever)
		}
	}
}

// dropKeyLocked is called with mu held; rec is nil for a key that is not known.
func (d *Directory) dropKeyLocked(id string, rec *keyRecord, revision int64) {
	d.keys.Delete(id, revision)
	if rec == nil {
		return
	}
	k := rec.live.Load()
	if at := (name{k.Organization, k.Instance}); rec.expected {
		d.expected--
	} else if d.keyCount[at]--; d.keyCount[at] == 0 {
		delete(d.keyCount, at)
	}
	rec.revoked.Store(true)
	rec.live.Store(nil)
}

// KeysOf counts the keys of an instance, or with an empty one those that are
// good for the whole organization; revoked ones too.
func (d *Directory) KeysOf(organization, instance string) int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.keyCount[name{organization, instance}]
}

// key returns the record of a key and that of its account, if they exist.
func (d *Directory) key(id string) (*accountRecord, *keyRecord) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	rec, ok := d.keys.Get(id)
	if !ok {
		return nil, nil
	}
	k := rec.live.Load()
	account, _ := d.accounts.Get(name{k.Organization, k.Account})
	return account, rec
}
