package identity

import (
	"maps"
	"sync/atomic"
	"time"

	"freshet/internal/base/revision"
)

// Key is the part of an API key that identity needs. It does not contain the token.
type Key struct {
	ID           string // the token's jti
	Name         string // the APIKey resource
	Organization string
	Account      string // the service account's name
	AccountUID   string // and its uid: a recreated account does not inherit keys
	Instance     string // "" for every instance of the organization
	Hash         string // from HashToken
	IssuedAt     time.Time
	ExpiresAt    time.Time // zero for never
	Revoked      bool
	Metadata     map[string]string
	Revision     int64 // of the resource; the newest wins (package revision)
}

func (k *Key) equal(o *Key) bool {
	return k.ID == o.ID && k.Name == o.Name && k.Organization == o.Organization && k.Account == o.Account &&
		k.AccountUID == o.AccountUID && k.Instance == o.Instance && k.Hash == o.Hash &&
		k.IssuedAt.Equal(o.IssuedAt) && k.ExpiresAt.Equal(o.ExpiresAt) && k.Revoked == o.Revoked &&
		maps.Equal(k.Metadata, o.Metadata)
}

// keyRecord is the record that cached tokens point to, see accountRecord.
type keyRecord struct {
	expected bool                // not stored yet, see ExpectKey; protected by Directory.mu
	live     atomic.Pointer[Key] // nil once deleted; written under Directory.mu
	revoked  atomic.Bool         // never unset: revocation is one-way (docs/spec/resources.md#r5)
}

// PutKey adds or updates an API key. Revocation is one-way: a later Put without Revoked
// does not undo it.
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
	k.Revision = 0 // a resync must not look like a change to cached tokens
	if k.Revoked {
		rec.revoked.Store(true)
	}
	k.Revoked = rec.revoked.Load()
	k.Metadata = maps.Clone(k.Metadata)
	if old := rec.live.Load(); old == nil || !old.equal(&k) {
		rec.live.Store(&k)
	}
}

// revokeLocked is called with Directory.mu held. live must not be nil.
func (r *keyRecord) revokeLocked() {
	r.revoked.Store(true)
	k := *r.live.Load()
	k.Revoked = true
	r.live.Store(&k)
}

// expectTimeout is how long ExpectKey waits for PutKey before it removes the key.
const expectTimeout = time.Minute

// ExpectKey adds a key that is about to be issued, because clients may read it shortly
// before PutKey is called. A key without a following PutKey is removed. KeysOf does not
// count the key before PutKey, because a failed call must not use up a quota.
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
	time.AfterFunc(expectTimeout, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if now, _ := d.keys.Get(k.ID); now == rec && rec.expected {
			d.dropKeyLocked(k.ID, rec, 0)
		}
	})
}

// DeleteKey deletes a key; its token stops working.
func (d *Directory) DeleteKey(id string) {
	if id == "" {
		return // the key of the resource was never issued
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	rec, _ := d.keys.Get(id)
	d.dropKeyLocked(id, rec, revision.Forever)
}

// dropKeysOfLocked deletes every key of one instance.
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

// dropKeyLocked deletes a key. rec is nil if the directory does not have it.
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

// KeysOf returns the number of keys of an instance, including revoked ones. An empty
// instance selects the keys for the whole organization.
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
