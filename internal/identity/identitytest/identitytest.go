// Package identitytest creates a working identity system for tests of the surfaces, with
// real keys and real tokens. Everything is in memory except for the key file. Only tests
// import it.
package identitytest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"freshet/internal/identity"
)

// IssuerURL is the URL of every World's issuer, and the audience of its resource API.
const IssuerURL = "http://127.0.0.1:8080"

// World is an identity system.
type World struct {
	Sealer    *identity.Sealer
	Keys      *identity.Keyring
	Issuer    *identity.Issuer
	Directory *identity.Directory
	Verifier  *identity.Verifier

	store identity.KeyStore
	t     testing.TB
}

// New returns a World that exists until the end of the test.
func New(t testing.TB) *World {
	t.Helper()
	sealer, err := identity.OpenSealer(filepath.Join(t.TempDir(), "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	store := identity.SealedStore(&Store{}, sealer, "signing-keys")
	keys, err := identity.OpenKeyring(context.Background(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := identity.NewIssuer(IssuerURL, keys)
	if err != nil {
		t.Fatal(err)
	}
	dir := identity.NewDirectory()
	return &World{
		Sealer:    sealer,
		Keys:      keys,
		Issuer:    issuer,
		Directory: dir,
		Verifier:  identity.NewVerifier(issuer, dir, identity.VerifierOptions{}),
		store:     store,
		t:         t,
	}
}

// Account adds a service account; edit may set Admin or System.
func (w *World) Account(organization, name string,
	edit ...func(*identity.Account),
) (*identity.Account, identity.Credentials) {
	w.t.Helper()
	credentials := w.Issuer.NewCredentials(organization, name)
	account := identity.Account{
		Organization: organization,
		Name:         name,
		UID:          "uid-" + credentials.ClientID,
		ClientID:     credentials.ClientID,
		SecretHash:   w.Sealer.HashSecret(credentials.ClientSecret),
	}
	for _, f := range edit {
		f(&account)
	}
	w.Directory.PutAccount(account)
	return &account, credentials
}

// Token issues an access token with a lifetime of one hour.
func (w *World) Token(account *identity.Account, audience string) string {
	w.t.Helper()
	token, _, err := w.Issuer.AccessToken(account, time.Hour, audience)
	if err != nil {
		w.t.Fatal(err)
	}
	return token.Reveal()
}

// Key issues an API key without expiry. Without an instance, the key is for the whole
// organization.
func (w *World) Key(account *identity.Account, instance string) (identity.Key, string) {
	w.t.Helper()
	key, token, err := w.Issuer.APIKey(identity.KeyRequest{
		Account: account, Name: "key-of-" + account.Name,
		Instance: instance,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Directory.PutKey(key)
	return key, token.Reveal()
}

// RotateKeys rotates the signing keys as another replica and refreshes w.Keys.
func (w *World) RotateKeys() {
	w.t.Helper()
	ctx := context.Background()
	replica, err := identity.OpenKeyring(ctx, w.store, time.Nanosecond)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := replica.RotateWhenDue(ctx); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Keys.Refresh(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// Store is an identity.KeyStore in memory. Several keyrings may share one, in the same way
// as replicas share etcd.
type Store struct {
	mu       sync.Mutex
	data     []byte
	revision int64
}

// Load implements identity.KeyStore.
func (s *Store) Load(context.Context) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data, s.revision, nil
}

// Save implements identity.KeyStore.
func (s *Store) Save(_ context.Context, data []byte, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision != s.revision {
		return identity.ErrKeysChanged
	}
	s.data, s.revision = data, s.revision+1
	return nil
}
