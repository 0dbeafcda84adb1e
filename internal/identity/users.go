package identity

import (
	"slices"
	"strings"
	"sync/atomic"

	"freshet/internal/base/revision"
)

// User is what identity has to know of a person.
type User struct {
	Organization string
	Name         string
	UID          string
	Email        string
	DisplayName  string // "" when only the address is known
	Barred       bool   // declined to come; must not sign in
	Revision     int64  // of the resource; the newest wins (package newest)
}

// same says whether a session of the user is still one of the same person.
func (u *User) same(was *User) bool {
	return u == was || u.UID == was.UID && SameEmail(u.Email, was.Email) && u.Barred == was.Barred
}

// SameEmail compares addresses of people. Case does not matter: no provider that
// people use tells two of them apart by it.
func SameEmail(a, b string) bool { return emailKey(a) == emailKey(b) }

func emailKey(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// userRecord is what cached tokens point to, as accountRecord is.
type userRecord struct {
	live atomic.Pointer[User] // nil once deleted; written under Directory.mu
}

// PutUser adds or updates a person. Another uid under the same name is another
// person.
func (d *Directory) PutUser(u User) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := name{u.Organization, u.Name}
	if d.deletedUID.Cover(u.UID, u.Revision) || !d.users.Accepts(at, u.Revision) {
		return
	}
	rec, _ := d.users.Get(at)
	if rec != nil && rec.live.Load().UID != u.UID {
		d.dropUserLocked(at, rec)
		rec = nil
	}
	if rec == nil {
		rec = &userRecord{}
	}
	d.users.Put(at, u.Revision, rec)
	u.Revision = 0 // a mere resync must not look like a change to cached tokens
	old := rec.live.Load()
	if old != nil && *old == u {
		return
	}
	if old != nil {
		d.forgetEmailLocked(old.Email, rec)
	}
	rec.live.Store(&u)
	key := emailKey(u.Email)
	d.emails[key] = append(d.emails[key], rec)
}

// DeleteUser ends a person, and with them every session and token. An empty uid
// means whoever has the name.
func (d *Directory) DeleteUser(organization, user, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if uid != "" {
		d.deletedUID.Add(uid, revision.Forever)
	}
	at := name{organization, user}
	rec, ok := d.users.Get(at)
	if !ok || (uid != "" && rec.live.Load().UID != uid) {
		return
	}
	d.dropUserLocked(at, rec)
}

// dropUserLocked is called with mu held.
func (d *Directory) dropUserLocked(at name, rec *userRecord) {
	old := rec.live.Load()
	if old.UID != "" {
		d.deletedUID.Add(old.UID, revision.Forever)
	}
	d.forgetEmailLocked(old.Email, rec)
	rec.live.Store(nil)
	d.users.Delete(at, 0)
}

// forgetEmailLocked is called with mu held. The list is replaced, since readers
// may hold the old one.
func (d *Directory) forgetEmailLocked(email string, rec *userRecord) {
	key := emailKey(email)
	left := slices.DeleteFunc(slices.Clone(d.emails[key]), func(r *userRecord) bool { return r == rec })
	if len(left) == 0 {
		delete(d.emails, key)
		return
	}
	d.emails[key] = left
}

// User finds a person by name. What the getters return is shared: read it.
func (d *Directory) User(organization, user string) (*User, bool) {
	return d.user(organization, user).load()
}

func (d *Directory) user(organization, user string) *userRecord {
	d.mu.RLock()
	defer d.mu.RUnlock()
	rec, _ := d.users.Get(name{organization, user})
	return rec
}

// UsersByEmail finds everybody with an address, in every organization, in the
// order of organization and name.
func (d *Directory) UsersByEmail(email string) []*User {
	d.mu.RLock()
	records := d.emails[emailKey(email)]
	d.mu.RUnlock()
	var list []*User
	for _, rec := range records {
		if u, ok := rec.load(); ok {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *User) int {
		if c := strings.Compare(a.Organization, b.Organization); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

func (r *userRecord) load() (*User, bool) {
	if r == nil {
		return nil, false
	}
	u := r.live.Load()
	return u, u != nil
}

// userPrefix begins the principal names of people. No account can have one that
// begins so: names of accounts have no colon.
const userPrefix = "user:"

// UserRole is how a person is called where accounts are called by their name: in
// lists of permissions of clusters, and before the @ of a principal. A name may be
// an e-mail address, so its own @ is escaped: nobody is called like somebody else.
func UserRole(user string) string {
	return userPrefix + strings.NewReplacer("%", "%25", "@", "%40").Replace(user)
}

// UserPrincipalName is how a person is called in audit records and access lists.
func (i *Issuer) UserPrincipalName(organization, user string) string {
	return i.PrincipalName(organization, UserRole(user))
}
