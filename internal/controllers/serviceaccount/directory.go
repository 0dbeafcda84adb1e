package serviceaccount

import (
	"encoding/base64"
	"log/slog"

	"freshet/api/v1alpha1"
	"freshet/internal/controllers/loop"
	"freshet/internal/identity"
	"freshet/internal/resources/registry"
	kind "freshet/internal/resources/registry/serviceaccount"
)

// Feed keeps the directory's accounts as the resources say.
type Feed struct {
	Directory *identity.Directory
	Sealer    *identity.Sealer
	// System says whether an account is the system administrator.
	System func(organization, name string) bool
	Log    *slog.Logger
}

// Observer is the feed for the store's write path.
func (f Feed) Observer() registry.Observer[*v1alpha1.ServiceAccount] {
	return registry.Observer[*v1alpha1.ServiceAccount]{
		Expected: f.expect,
		Created:  f.Put,
		Updated:  f.Put,
		Deleting: f.Delete,
		Deleted:  f.Delete,
	}
}

// Put tells the directory what an account is now.
func (f Feed) Put(sa *v1alpha1.ServiceAccount) {
	if sa.DeletionTimestamp != nil && (sa.DeletionGracePeriodSeconds == nil || *sa.DeletionGracePeriodSeconds == 0) {
		f.Delete(sa)
		return
	}
	f.Directory.PutAccount(f.account(sa))
}

// expect lets an account use its first credentials from the moment that anybody
// can read them.
func (f Feed) expect(sa *v1alpha1.ServiceAccount) {
	if sa.Status.PrivateKeyData != "" && sa.DeletionTimestamp == nil {
		f.Directory.ExpectAccount(f.account(sa))
	}
}

func (f Feed) account(sa *v1alpha1.ServiceAccount) identity.Account {
	account := identity.Account{
		Organization: sa.Namespace,
		Name:         sa.Name,
		UID:          string(sa.UID),
		Admin:        kind.IsAdmin(sa),
		System:       f.System(sa.Namespace, sa.Name),
		Revision:     loop.Revision(sa),
	}
	if sa.Status.PrivateKeyData != "" {
		credentials, err := decode(sa)
		if err != nil {
			// Without readable credentials the account exists but cannot sign in.
			f.Log.Error("credentials of a service account cannot be read",
				slog.String("account", sa.Namespace+"/"+sa.Name), slog.String("error", err.Error()))
		} else {
			account.ClientID = credentials.ClientID
			account.SecretHash = f.Sealer.HashSecret(credentials.ClientSecret)
		}
	}
	return account
}

// Delete ends an account: its tokens and keys are dead when it returns.
func (f Feed) Delete(sa *v1alpha1.ServiceAccount) {
	f.Directory.DeleteAccount(sa.Namespace, sa.Name, string(sa.UID))
}

func decode(sa *v1alpha1.ServiceAccount) (identity.Credentials, error) {
	file, err := base64.StdEncoding.DecodeString(sa.Status.PrivateKeyData)
	if err != nil {
		return identity.Credentials{}, err
	}
	return identity.ParseCredentials(file)
}
