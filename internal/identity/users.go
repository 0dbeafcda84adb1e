package identity

import (
	"cmp"
	"slices"
	"strings"

	"freshet/internal/base/revision"
)

// User is the part of a user that identity needs.
type User struct {
	Organization string
	Name         string
	UID          string
	Email        string
	DisplayName  string // "" if only the e-mail address is known
	Barred       bool   // declined the invitation; must not sign in
	Revision     int64  // of the resource; the newest wins (package revision)
}

// sameIdentity reports whether sessions that the user had in the state was are still valid.
func (u *User) sameIdentity(was *User) bool {
	return u == was || u.UID == was.UID && SameEmail(u.Email, was.Email) && u.Barred == was.Barred
}

// SameEmail compares e-mail addresses without regard to case, because no common provider
// distinguishes addresses by case.
func SameEmail(a, b string) bool { return emailKey(a) == emailKey(b) }

func emailKey(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// PutUser adds or updates a user. Another uid under the same name is another user.
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
	u.Revision = 0 // a resync must not look like a change to cached tokens
	old := rec.live.Load()
	if old != nil && *old == u {
		return
	}
	if old != nil {
		d.removeEmailLocked(old.Email, rec)
	}
	rec.live.Store(&u)
	key := emailKey(u.Email)
	d.emails[key] = append(d.emails[key], rec)
}

// DeleteUser deletes a user; all sessions and tokens of the user stop working. An empty
// uid matches any user with the name.
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

func (d *Directory) dropUserLocked(at name, rec *userRecord) {
	old := rec.live.Load()
	if old.UID != "" {
		d.deletedUID.Add(old.UID, revision.Forever)
	}
	d.removeEmailLocked(old.Email, rec)
	rec.live.Store(nil)
	d.users.Delete(at, 0)
}

// removeEmailLocked removes a user from the users of an e-mail address. It replaces the
// list, because readers use it after they have released the lock.
func (d *Directory) removeEmailLocked(email string, rec *userRecord) {
	key := emailKey(email)
	left := slices.DeleteFunc(slices.Clone(d.emails[key]), func(r *userRecord) bool { return r == rec })
	if len(left) == 0 {
		delete(d.emails, key)
		return
	}
	d.emails[key] = left
}

// User returns a user by name. The result is shared; callers must not change it.
func (d *Directory) User(organization, user string) (*User, bool) {
	return d.user(organization, user).load()
}

func (d *Directory) user(organization, user string) *userRecord {
	d.mu.RLock()
	defer d.mu.RUnlock()
	rec, _ := d.users.Get(name{organization, user})
	return rec
}

// UsersByEmail returns the users with an e-mail address in all organizations, sorted by
// organization and name.
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
		return cmp.Or(strings.Compare(a.Organization, b.Organization), strings.Compare(a.Name, b.Name))
	})
	return list
}

// userPrefix is the prefix of users' principal names. Account names contain no colon, so
// no account can have the name of a user.
const userPrefix = "user:"

// UserRole returns the name of a user where accounts are identified by their name: in
// the permission lists of clusters, and before the @ of a principal. A user's name may be an
// e-mail address, so UserRole escapes its @ to keep the names unique.
func UserRole(user string) string {
	return userPrefix + strings.NewReplacer("%", "%25", "@", "%40").Replace(user)
}

// UserPrincipalName returns the name of a user in audit records and ACLs.
func (i *Issuer) UserPrincipalName(organization, user string) string {
	return i.PrincipalName(organization, UserRole(user))
}
