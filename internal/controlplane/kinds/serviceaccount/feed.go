package serviceaccount

import (
	"encoding/base64"
	"log/slog"
	"time"

	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity"
)

// Put implements store.Observer. It updates the account in the directory.
func (k *Kind) Put(sa *object) {
	if reconcile.Ended(sa) {
		k.Remove(sa)
		return
	}
	k.Directory.PutAccount(k.account(sa))
}

// Expect implements store.Expecter. It makes the first credentials of an account work before any
// client can read them.
func (k *Kind) Expect(sa *object) {
	if sa.Status.PrivateKeyData != "" && sa.DeletionTimestamp == nil {
		k.Directory.ExpectAccount(k.account(sa))
	}
}

func (k *Kind) account(sa *object) identity.Account {
	account := identity.Account{
		Organization: sa.Namespace,
		Name:         sa.Name,
		UID:          string(sa.UID),
		Admin:        isAdmin(sa),
		System:       k.isSystem(sa),
		Revision:     reconcile.Revision(sa),
	}
	if sa.Status.PrivateKeyData != "" {
		credentials, err := decode(sa)
		if err != nil {
			// Without readable credentials the account exists but cannot authenticate.
			k.Log.Error("credentials of a service account cannot be read; it cannot authenticate until they are "+
				"replaced", slog.String("account", sa.Namespace+"/"+sa.Name), slog.Any("error", err))
		} else {
			account.ClientID = credentials.ClientID
			account.SecretHash = k.Sealer.HashSecret(credentials.ClientSecret)
			if r := credentials.Replaced; r.ClientID != "" && time.Now().Before(r.Ends) {
				account.Replaced = identity.Client{
					ID:         r.ClientID,
					SecretHash: k.Sealer.HashSecret(r.ClientSecret), Ends: r.Ends,
				}
			}
		}
	}
	return account
}

// Remove implements store.Observer. It ends an account: its tokens and keys are rejected when it
// returns.
func (k *Kind) Remove(sa *object) { k.Directory.DeleteAccount(sa.Namespace, sa.Name, string(sa.UID)) }

func decode(sa *object) (identity.Credentials, error) {
	file, err := base64.StdEncoding.DecodeString(sa.Status.PrivateKeyData)
	if err != nil {
		return identity.Credentials{}, err
	}
	return identity.ParseCredentials(file)
}
