package identity

import (
	"sync/atomic"
	"time"

	"freshet/internal/base/revision"
)

// Account is what identity has to know of a service account.
type Account struct {
	Organization string
	Name         string
	UID          string
	ClientID     string
	SecretHash   string // of Sealer.HashSecret
	Replaced     Client // what a rotation has replaced, and is still good for a while
	Admin        bool   // administrator of its organization
	System       bool   // administrator of everything
	Revision     int64  // of the resource; the newest wins (package newest)
}

// Client is what an account signed in with until its credentials were rotated.
type Client struct {
	ID         string // "" when there is none
	SecretHash string
	Ends       time.Time
}

// accepts says whether a client id is one that the account may use now.
func (a *Account) accepts(clientID string, now time.Time) bool {
	switch clientID {
	case "":
		return false
	case a.ClientID:
		return true
	case a.Replaced.ID:
		return now.Before(a.Replaced.Ends)
	}
	return false
}

// Accepts says whether a client id is one that the account may use now.
func (a *Account) Accepts(clientID string) bool { return a.accepts(clientID, time.Now()) }

// as is the account in the hands of whoever signs in with a client id that it
// accepts: tokens are made for that one, and end with it.
func (a *Account) as(clientID string) *Account {
	if clientID == a.ClientID {
		return a
	}
	with := *a
	with.ClientID, with.SecretHash = a.Replaced.ID, a.Replaced.SecretHash
	return &with
}

// same says whether what a token of the account may do is what it was.
func (a *Account) same(was *Account) bool {
	return a == was || a.Organization == was.Organization && a.Name == was.Name && a.UID == was.UID &&
		a.Admin == was.Admin && a.System == was.System
}

// Scopes are what the account's access tokens say about it. They inform
// clients; decisions are made from bindings.
func (a *Account) Scopes() []string {
	if a.Admin || a.System {
		return []string{"admin", "access"}
	}
	return []string{"access"}
}

// accountRecord is what cached tokens point to. live is the present state, nil
// once the account is deleted; a token that was verified against another state
// asks that one whether it is still good. So an eviction is one atomic store.
type accountRecord struct {
	live atomic.Pointer[Account] // written under Directory.mu
}

// PutAccount adds or updates an account. Another uid under the same name is
// another account: whatever the old one held is dead.
func (d *Directory) PutAccount(a Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := name{a.Organization, a.Name}
	if d.deletedUID.Cover(a.UID, a.Revision) || !d.accounts.Accepts(at, a.Revision) {
		return
	}
	rec, _ := d.accounts.Get(at)
	if rec != nil {
		switch old := rec.live.Load(); {
		case old.UID != a.UID:
			d.dropAccountLocked(at, rec)
			rec = nil
		default:
			// Other credentials: tokens of those that are gone end here.
			for _, id := range []string{old.ClientID, old.Replaced.ID} {
				if id != a.ClientID && id != a.Replaced.ID {
					d.dropClientLocked(id, rec)
				}
			}
		}
	}
	if rec == nil {
		rec = &accountRecord{}
	}
	d.accounts.Put(at, a.Revision, rec)
	// A client id belongs to whoever had it first: nobody takes over another
	// account's by claiming it.
	for _, id := range []string{a.ClientID, a.Replaced.ID} {
		if holder := d.clients[id]; id != "" && (holder == nil || holder == rec) {
			d.clients[id] = rec
		}
	}
	a.Revision = 0 // a mere resync must not look like a change to cached tokens
	if old := rec.live.Load(); old == nil || *old != a {
		rec.live.Store(&a)
	}
}

// ExpectAccount lets an account in that is about to get its first credentials:
// readers may see them a moment before PutAccount is called. Its revision is that
// of the resource before; what comes of the write is newer. Credentials whose
// write fails after all end with the next PutAccount.
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
		d.deletedUID.Add(uid, revision.Forever)
	}
	at := name{organization, account}
	rec, ok := d.accounts.Get(at)
	if !ok || (uid != "" && rec.live.Load().UID != uid) {
		return
	}
	d.dropAccountLocked(at, rec)
}

// dropAccountLocked is called with mu held.
func (d *Directory) dropAccountLocked(at name, rec *accountRecord) {
	old := rec.live.Load()
	if old.UID != "" {
		d.deletedUID.Add(old.UID, revision.Forever)
	}
	rec.live.Store(nil)
	d.accounts.Delete(at, 0)
	d.dropClientLocked(old.ClientID, rec)
	d.dropClientLocked(old.Replaced.ID, rec)
}

// dropClientLocked is called with mu held.
func (d *Directory) dropClientLocked(clientID string, rec *accountRecord) {
	if d.clients[clientID] == rec {
		delete(d.clients, clientID)
	}
}

// Account finds an account by name. What the getters return is shared: read it.
func (d *Directory) Account(organization, account string) (*Account, bool) {
	return d.account(organization, account).load()
}

func (d *Directory) account(organization, account string) *accountRecord {
	d.mu.RLock()
	defer d.mu.RUnlock()
	rec, _ := d.accounts.Get(name{organization, account})
	return rec
}

// AccountByClientID finds an account by a client id that is good now, and returns
// it with that one as its own.
func (d *Directory) AccountByClientID(clientID string) (*Account, bool) {
	account, ok := d.client(clientID).load()
	if !ok || !account.accepts(clientID, time.Now()) {
		return nil, false
	}
	return account.as(clientID), true
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
