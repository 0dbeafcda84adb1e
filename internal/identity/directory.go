package identity

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Account is what identity has to know of a service account.
type Account struct {
	Organization string
	Name         string
	UID          string
	ClientID     string
	SecretHash   string // of Sealer.HashSecret
	Admin        bool   // administrator of its organization
	System       bool   // administrator of everything
	Revision     int64  // of the resource; older ones do not replace newer ones; 0 is not compared
}

// Scopes are what the account's access tokens say about it. They inform
// clients; decisions are made from bindings.
func (a *Account) Scopes() []string {
	if a.Admin || a.System {
		return []string{"admin", "access"}
	}
	return []string{"access"}
}

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
	Revision     int64 // of the resource; older ones do not replace newer ones; 0 is not compared
}

func (k *Key) equal(o *Key) bool {
	return k.ID == o.ID && k.Name == o.Name && k.Organization == o.Organization && k.Account == o.Account &&
		k.AccountUID == o.AccountUID && k.Instance == o.Instance && k.Hash == o.Hash &&
		k.IssuedAt.Equal(o.IssuedAt) && k.ExpiresAt.Equal(o.ExpiresAt) && k.Revoked == o.Revoked &&
		maps.Equal(k.Metadata, o.Metadata)
}

// name addresses a namespaced resource.
type name struct{ organization, name string }

// The records are what cached tokens point to. live is the present state, nil
// once the thing is deleted or revoked; a token that was verified against
// another state is verified again. So an eviction is one atomic store.
type (
	accountRecord struct {
		live     atomic.Pointer[Account]
		revision int64 // under Directory.mu
	}
	keyRecord struct {
		expected bool // and not stored yet; under Directory.mu
		live     atomic.Pointer[Key]
		revoked  atomic.Bool // never unset: revocation is one-way (decision R5)
		revision int64       // under Directory.mu
	}
)

// Directory is the truth about accounts and API keys that the verifier
// consults, all in memory. The resource store's write path calls Put, Delete
// and Revoke after its commit and before it answers, so that a change is in
// force when the caller hears of it; informers repeat the same calls for
// changes made by other replicas. Repeats and late arrivals are harmless: a
// deleted uid or key id never comes back, a revoked key stays revoked, and an
// older revision does not replace a newer one.
type Directory struct {
	mu       sync.RWMutex
	accounts map[name]*accountRecord
	clients  map[string]*accountRecord
	keys     map[string]*keyRecord
	keyNames map[name]string // APIKey resource → key id
	keyCount map[name]int    // organization and instance → keys that are stored
	expected int             // keys that are not stored yet
	goneUIDs *tombstones
	goneKeys *tombstones
}

// tombstonesKept bounds the memory of the deleted; late events are seconds
// old, and this many deletions take minutes.
const tombstonesKept = 1 << 16

// NewDirectory makes an empty directory.
func NewDirectory() *Directory {
	return &Directory{
		accounts: make(map[name]*accountRecord),
		clients:  make(map[string]*accountRecord),
		keys:     make(map[string]*keyRecord),
		keyNames: make(map[name]string),
		keyCount: make(map[name]int),
		goneUIDs: newTombstones(tombstonesKept),
		goneKeys: newTombstones(tombstonesKept),
	}
}

// PutAccount adds or updates an account. Another uid under the same name is
// another account: whatever the old one held is dead.
func (d *Directory) PutAccount(a Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.goneUIDs.has(a.UID) {
		return
	}
	at := name{a.Organization, a.Name}
	rec := d.accounts[at]
	if rec != nil {
		old := rec.live.Load()
		switch {
		case a.Revision != 0 && a.Revision < rec.revision:
			return
		case old.UID != a.UID:
			d.dropAccount(at, rec)
			rec = nil
		case old.ClientID != a.ClientID:
			// New credentials: tokens of the old ones end here.
			d.dropClient(old.ClientID, rec)
			rec.live.Store(nil)
			rec = nil
		}
	}
	if rec == nil {
		rec = &accountRecord{}
		d.accounts[at] = rec
	}
	// A client id belongs to whoever had it first: nobody takes over another
	// account's by claiming it.
	if holder := d.clients[a.ClientID]; a.ClientID != "" && (holder == nil || holder == rec) {
		d.clients[a.ClientID] = rec
	}
	rec.revision = a.Revision
	a.Revision = 0 // a mere resync must not look like a change to cached tokens
	if old := rec.live.Load(); old == nil || *old != a {
		rec.live.Store(&a)
	}
}

// ExpectAccount lets an account in that is about to get its first credentials:
// readers may see them a moment before PutAccount is called. Its revision is that
// of the resource before; what comes of the write is newer. Credentials that
// come to nothing after all are nobody's.
func (d *Directory) ExpectAccount(a Account) {
	if known, ok := d.Account(a.Organization, a.Name); ok && known.UID == a.UID && known.ClientID != "" {
		return
	}
	a.Revision++
	d.PutAccount(a)
}

// DeleteAccount ends an account, and with it every token and key of it. Call
// it as soon as deletion is requested, finalizers or not. An empty uid means
// whatever account has the name.
func (d *Directory) DeleteAccount(organization, account, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if uid != "" {
		d.goneUIDs.add(uid)
	}
	at := name{organization, account}
	rec := d.accounts[at]
	if rec == nil || (uid != "" && rec.live.Load().UID != uid) {
		return
	}
	d.dropAccount(at, rec)
}

func (d *Directory) dropAccount(at name, rec *accountRecord) {
	old := rec.live.Load()
	d.goneUIDs.add(old.UID)
	rec.live.Store(nil)
	delete(d.accounts, at)
	d.dropClient(old.ClientID, rec)
}

func (d *Directory) dropClient(clientID string, rec *accountRecord) {
	if d.clients[clientID] == rec {
		delete(d.clients, clientID)
	}
}

// PutKey adds or updates an API key. Revoked is one-way: once seen, a later
// Put without it changes nothing about that.
func (d *Directory) PutKey(k Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.goneKeys.has(k.ID) {
		return
	}
	rec := d.keys[k.ID]
	if rec == nil {
		rec = &keyRecord{}
		d.keys[k.ID] = rec
		d.keyCount[name{k.Organization, k.Instance}]++
	} else if rec.expected {
		rec.expected = false
		d.expected--
		d.keyCount[name{k.Organization, k.Instance}]++
	} else if k.Revision != 0 && k.Revision < rec.revision {
		if k.Revoked {
			rec.revoke()
		}
		return
	}
	if k.Name != "" {
		d.keyNames[name{k.Organization, k.Name}] = k.ID
	}
	rec.revision = k.Revision
	k.Revision = 0
	if k.Revoked {
		rec.revoked.Store(true)
	}
	k.Revoked = rec.revoked.Load()
	k.Metadata = maps.Clone(k.Metadata)
	if old := rec.live.Load(); old == nil || !old.equal(&k) {
		rec.live.Store(&k)
	}
}

// expectation is how long an expected key may take to be stored.
const expectation = time.Minute

// ExpectKey lets a key in that is about to be issued: readers may see it a
// moment before PutKey is called. One that does not come is forgotten, and none
// is counted before it has come: calls that fail must not use up a quota.
func (d *Directory) ExpectKey(k Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys[k.ID] != nil || d.goneKeys.has(k.ID) {
		return
	}
	rec := &keyRecord{expected: true}
	k.Revision = 0
	k.Metadata = maps.Clone(k.Metadata)
	rec.revoked.Store(k.Revoked)
	rec.live.Store(&k)
	d.keys[k.ID] = rec
	d.expected++
	time.AfterFunc(expectation, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.keys[k.ID] == rec && rec.expected {
			d.dropKey(k.ID, rec)
		}
	})
}

// RevokeKey ends a key for good.
func (d *Directory) RevokeKey(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if rec := d.keys[id]; rec != nil {
		rec.revoke()
	}
}

func (r *keyRecord) revoke() {
	r.revoked.Store(true)
	k := *r.live.Load()
	k.Revoked = true
	r.live.Store(&k)
}

// DeleteKey ends a key and forgets it.
func (d *Directory) DeleteKey(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.goneKeys.add(id)
	if rec := d.keys[id]; rec != nil {
		d.dropKey(id, rec)
	}
}

// DeleteKeysOf ends every key that is good for one instance. Call it as soon as
// the instance's deletion is requested: another one of the same name must not
// be open to keys of this one.
func (d *Directory) DeleteKeysOf(organization, instance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if instance == "" || (d.keyCount[name{organization, instance}] == 0 && d.expected == 0) {
		return
	}
	for id, rec := range d.keys {
		if k := rec.live.Load(); k.Organization == organization && k.Instance == instance {
			d.goneKeys.add(id)
			d.dropKey(id, rec)
		}
	}
}

func (d *Directory) dropKey(id string, rec *keyRecord) {
	k := rec.live.Load()
	if at := (name{k.Organization, k.Name}); d.keyNames[at] == id {
		delete(d.keyNames, at)
	}
	if at := (name{k.Organization, k.Instance}); rec.expected {
		d.expected--
	} else if d.keyCount[at]--; d.keyCount[at] == 0 {
		delete(d.keyCount, at)
	}
	rec.revoked.Store(true)
	rec.live.Store(nil)
	delete(d.keys, id)
}

// KeysOf counts the keys of an instance, or with an empty one those that are
// good for the whole organization; revoked ones too.
func (d *Directory) KeysOf(organization, instance string) int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.keyCount[name{organization, instance}]
}

// Account finds an account by name. What the getters return is shared: read it.
func (d *Directory) Account(organization, account string) (*Account, bool) {
	d.mu.RLock()
	rec := d.accounts[name{organization, account}]
	d.mu.RUnlock()
	return rec.load()
}

// AccountByClientID finds an account by its client id.
func (d *Directory) AccountByClientID(clientID string) (*Account, bool) {
	return d.client(clientID).load()
}

func (d *Directory) client(clientID string) *accountRecord {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.clients[clientID]
}

func (r *accountRecord) load() (*Account, bool) {
	if r == nil {
		return nil, false
	}
	a := r.live.Load()
	return a, a != nil
}

// Key finds an API key by its id.
func (d *Directory) Key(id string) (*Key, bool) {
	_, rec := d.key(id)
	if rec == nil {
		return nil, false
	}
	k := rec.live.Load()
	return k, k != nil
}

// KeyNamed finds an API key by its resource.
func (d *Directory) KeyNamed(organization, apiKey string) (*Key, bool) {
	d.mu.RLock()
	id := d.keyNames[name{organization, apiKey}]
	d.mu.RUnlock()
	return d.Key(id)
}

// key returns the record of a key and that of its account, if they exist.
func (d *Directory) key(id string) (*accountRecord, *keyRecord) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	rec := d.keys[id]
	if rec == nil {
		return nil, nil
	}
	k := rec.live.Load()
	return d.accounts[name{k.Organization, k.Account}], rec
}

// Len counts accounts and keys, for metrics.
func (d *Directory) Len() (accounts, keys int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.accounts), len(d.keys)
}

// tombstones remembers the last n ids that were deleted.
type tombstones struct {
	set  map[string]struct{}
	ring []string
	next int
}

func newTombstones(n int) *tombstones {
	return &tombstones{set: make(map[string]struct{}), ring: make([]string, n)}
}

func (t *tombstones) has(id string) bool {
	_, ok := t.set[id]
	return ok
}

func (t *tombstones) add(id string) {
	if id == "" || t.has(id) {
		return
	}
	delete(t.set, t.ring[t.next])
	t.ring[t.next] = id
	t.set[id] = struct{}{}
	t.next = (t.next + 1) % len(t.ring)
}
