package user

import (
	"context"

	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
)

// Authorizer decides who may say which person a user is; access.Policy is one.
type Authorizer interface {
	MayActAsUser(who *identity.Principal, organization, user string) error
}

// SignIns knows what people can sign in with; signin.Service is one.
type SignIns interface {
	StateOf(uid, email string) signin.State
	OnChange(f func(organization, user string))
	Forget(uid string)
}

// Admit implements store.Admitter: role bindings name users, so whoever makes the
// user that a binding names, or gives one another address, decides who has its
// roles.
func (k *Kind) Admit(ctx context.Context, user, old *object) error {
	who := caller.Principal(ctx)
	if who == nil || old != nil && identity.SameEmail(old.Spec.Email, user.Spec.Email) {
		return nil
	}
	return k.Authorizer.MayActAsUser(who, user.Namespace, user.Name)
}

// Put implements store.Observer: it tells the directory who a user is now.
func (k *Kind) Put(user *object) {
	if user.DeletionTimestamp != nil &&
		(user.DeletionGracePeriodSeconds == nil || *user.DeletionGracePeriodSeconds == 0) {
		k.Remove(user)
		return
	}
	known := identity.User{
		Organization: user.Namespace, Name: user.Name, UID: string(user.UID), Email: user.Spec.Email,
		Barred: declined(user), Revision: reconcile.Revision(user),
	}
	if name := user.Spec.Name; name != nil {
		known.DisplayName = name.First + " " + name.Last
	}
	before, was := k.Directory.User(user.Namespace, user.Name)
	k.Directory.PutUser(known)
	// Whoever has another address, or does not want to come, is another person: what
	// they had does not come back with the address.
	if now, ok := k.Directory.User(user.Namespace, user.Name); was && ok && before.UID == now.UID &&
		(!identity.SameEmail(before.Email, now.Email) || now.Barred && !before.Barred) {
		k.SignIns.Forget(now.UID)
	}
}

// Remove implements store.Observer: it ends a user: sessions, codes and tokens are
// dead when it returns.
func (k *Kind) Remove(user *object) {
	k.Directory.DeleteUser(user.Namespace, user.Name, string(user.UID))
	k.SignIns.Forget(string(user.UID))
}
