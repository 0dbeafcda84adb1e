package identity

import (
	"sync/atomic"
	"time"

	"freshet/internal/base/revision"
)

// Account is the part of a service account that identity needs.
type Account struct {
	Organization string
	Name         string
	UID          string
	ClientID     string
	SecretHash   string // from Sealer.HashSecret
	Replaced     Client // credentials before the last rotation, valid until Replaced.Ends
	Admin        bool   // administrator of its organization
	System       bool   // administrator of all organizations
	Revision     int64  // of the resource; the newest wins (package revision)
}

// Client contains the credentials of an account before its last rotation.
type Client struct {
	ID         string // "" if there was no rotation
	SecretHash string
	Ends       time.Time
}

// accepts reports whether the account may use a client id at this time.
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

// Accepts reports whether the account may use a client id now.
func (a *Account) Accepts(clientID string) bool { return a.accepts(clientID, time.Now()) }

// withClientID returns the account with the credentials of an accepted client id. Tokens are issued
// for that client id, and expire with it.
func (a *Account) withClientID(clientID string) *Account {
	if clientID == a.ClientID {
		return a
	}
	with := *a
	with.ClientID, with.SecretHash = a.Replaced.ID, a.Replaced.SecretHash
	return &with
}

// sameIdentity reports whether tokens of the account still mean the same principal.
func (a *Account) sameIdentity(was *Account) bool {
	return a == was || a.Organization == was.Organization && a.Name == was.Name && a.UID == was.UID &&
		a.Admin == was.Admin && a.System == was.System
}

// Scopes returns the scopes in the account's access tokens. They are information for
// clients; package access decides by role bindings.
func (a *Account) Scopes() []string {
	if a.Admin || a.System {
		return []string{"admin", "access"}
	}
	return []string{"access"}
}

// record is the record of an account or a user that cached tokens point to. live is the current
// state, nil after the account is deleted. A cached token compares it with the state at its
// verification, so that one atomic store invalidates all tokens of the account.
type record[T any] struct {
	live atomic.Pointer[T] // written under Directory.mu
}

type (
	accountRecord = record[Account]
	userRecord    = record[User]
)

// PutAccount adds or updates an account. Another uid under the same name is another
// account: tokens and keys of the old one stop working.
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
			// Tokens of credentials that the account no longer has stop working here.
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
	// A client id belongs to the account that had it first, so that no account can take
	// over the client id of another.
	for _, id := range []string{a.ClientID, a.Replaced.ID} {
		if holder := d.clients[id]; id != "" && (holder == nil || holder == rec) {
			d.clients[id] = rec
		}
	}
	a.Revision = 0 // a resync must not look like a change to cached tokens
	if old := rec.live.Load(); old == nil || *old != a {
		rec.live.Store(&a)
	}
}

// ExpectAccount adds an account whose first credentials are about to be stored, because
// clients may read them shortly before PutAccount is called. a.Revision is the revision
// before the write; the revision after it is higher. If the write fails, the next
// PutAccount removes the credentials.
func (d *Directory) ExpectAccount(a Account) {
	if known, ok := d.Account(a.Organization, a.Name); ok && known.UID == a.UID && known.ClientID != "" {
		return
	}
	a.Revision++
	d.PutAccount(a)
}

// DeleteAccount deletes an account; all its tokens and keys stop working. Call it as soon
// as deletion is requested, also if finalizers remain. An empty uid matches any account
// with the name.
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

func (d *Directory) dropClientLocked(clientID string, rec *accountRecord) {
	if d.clients[clientID] == rec {
		delete(d.clients, clientID)
	}
}

// Account returns an account by name. The result is shared; callers must not change it.
func (d *Directory) Account(organization, account string) (*Account, bool) {
	return d.account(organization, account).load()
}

func (d *Directory) account(organization, account string) *accountRecord {
	d.mu.RLock()
	defer d.mu.RUnlock()
	rec, _ := d.accounts.Get(name{organization, account})
	return rec
}

// AccountByClientID returns the account that accepts a client id now, with the credentials
// of that client id.
func (d *Directory) AccountByClientID(clientID string) (*Account, bool) {
	account, ok := d.client(clientID).load()
	if !ok || !account.accepts(clientID, time.Now()) {
		return nil, false
	}
	return account.withClientID(clientID), true
}

func (d *Directory) client(clientID string) *accountRecord {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.clients[clientID]
}

func (r *record[T]) load() (*T, bool) {
	if r == nil {
		return nil, false
	}
	live := r.live.Load()
	return live, live != nil
}
