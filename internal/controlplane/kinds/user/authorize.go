package user

import (
	"context"

	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/kinds/user/invite"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
)

// Authorizer decides which callers may determine the person behind a user; access.Policy implements
// it.
type Authorizer = invite.Authorizer

// SignIns provides the sign-in state of users; signin.People implements it.
type SignIns interface {
	StateOf(uid, email string) signin.State
	OnChange(f func(organization, user string))
	Forget(uid string)
}

// Admit implements store.Admitter. Role bindings refer to users by name, so a caller that creates a
// user with bindings, or changes a user's e-mail address, decides who gets these roles.
func (k *Kind) Admit(ctx context.Context, user, old *object) error {
	principal := caller.Principal(ctx)
	if principal == nil || old != nil && identity.SameEmail(old.Spec.Email, user.Spec.Email) {
		return nil
	}
	return k.Authorizer.MayActAsUser(principal, user.Namespace, user.Name)
}

// Put implements store.Observer. It updates the user in the directory.
func (k *Kind) Put(user *object) {
	if reconcile.Ended(user) {
		k.Remove(user)
		return
	}
	record := identity.User{
		Organization: user.Namespace, Name: user.Name, UID: string(user.UID), Email: user.Spec.Email,
		Barred: declined(user), Revision: reconcile.Revision(user),
	}
	if name := user.Spec.Name; name != nil {
		record.DisplayName = name.First + " " + name.Last
	}
	before, existed := k.Directory.User(user.Namespace, user.Name)
	k.Directory.PutUser(record)
	// A user with another e-mail address, or one who has declined, counts as another person: the
	// old sign-in methods must not become valid again with the address.
	if now, ok := k.Directory.User(user.Namespace, user.Name); existed && ok && before.UID == now.UID &&
		(!identity.SameEmail(before.Email, now.Email) || now.Barred && !before.Barred) {
		k.SignIns.Forget(now.UID)
	}
}

// Remove implements store.Observer. It ends a user: sessions, codes and tokens are rejected when it
// returns.
func (k *Kind) Remove(user *object) {
	k.Directory.DeleteUser(user.Namespace, user.Name, string(user.UID))
	k.SignIns.Forget(string(user.UID))
}
