package identity_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// replica is one of several processes that share a store.
type replica struct {
	keys     *identity.Keyring
	issuer   *identity.Issuer
	verifier *identity.Verifier
}

func newReplica(t *testing.T, store identity.KeyStore, dir *identity.Directory, rotation time.Duration) replica {
	t.Helper()
	keys, err := identity.OpenKeyring(context.Background(), store, rotation)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := identity.NewIssuer(identitytest.IssuerURL, keys)
	if err != nil {
		t.Fatal(err)
	}
	return replica{keys, issuer, identity.NewVerifier(issuer, dir, identity.VerifierOptions{})}
}

func (r replica) token(t *testing.T, a *identity.Account) string {
	t.Helper()
	token, _, err := r.issuer.AccessToken(a, time.Hour, "aud")
	if err != nil {
		t.Fatal(err)
	}
	return token.Reveal()
}

func (r replica) accepts(t *testing.T, token string) {
	t.Helper()
	if _, err := r.verifier.Authenticate(context.Background(), token, "aud"); err != nil {
		t.Errorf("token rejected: %v", err)
	}
}

// always is a rotation interval that is always due.
const always = time.Nanosecond

// rotate rotates the keys of a replica with the rotation interval always.
func (r replica) rotate(t *testing.T) {
	t.Helper()
	if err := r.keys.RotateWhenDue(context.Background()); err != nil {
		t.Error(err)
	}
}

// kids returns the published key ids: active, next, then retired ones.
func (r replica) kids(t *testing.T) []string {
	t.Helper()
	return publishedKids(t, r.keys)
}

func publishedKids(t *testing.T, keys *identity.Keyring) []string {
	t.Helper()
	var set struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal(keys.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	kids := make([]string, len(set.Keys))
	for i, key := range set.Keys {
		kids[i] = key.Kid
	}
	return kids
}

var someAccount = identity.Account{Organization: "acme", Name: "ci", UID: "u1", ClientID: "c1"}

func oneAccount() *identity.Directory {
	dir := identity.NewDirectory()
	dir.PutAccount(someAccount)
	return dir
}

func TestConcurrentlyStartedReplicasShareOneRing(t *testing.T) {
	t.Parallel()
	store, dir := &identitytest.Store{}, oneAccount()
	replicas := make([]replica, 5)
	var wg sync.WaitGroup
	for i := range replicas {
		wg.Go(func() { replicas[i] = newReplica(t, store, dir, 0) })
	}
	wg.Wait()
	for i, r := range replicas {
		if !slices.Equal(r.kids(t), replicas[0].kids(t)) {
			t.Errorf("replica %d has keys %v, want those of replica 0, %v", i, r.kids(t), replicas[0].kids(t))
		}
		if len(r.kids(t)) != 2 {
			t.Errorf("replica %d has %d keys, want active and next", i, len(r.kids(t)))
		}
	}
}

func TestRotationHasNoDowntime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, dir := &identitytest.Store{}, oneAccount()
	a, b := newReplica(t, store, dir, always), newReplica(t, store, dir, 0)
	before := a.token(t, &someAccount)
	for range 5 {
		a.rotate(t)
		// b has not loaded the rotation, but each accepts tokens of the other.
		b.accepts(t, a.token(t, &someAccount))
		a.accepts(t, b.token(t, &someAccount))
		if err := b.keys.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		a.accepts(t, before)
		b.accepts(t, before)
	}
	if n := len(a.kids(t)); n != 7 {
		t.Errorf("%d keys after five rotations, want 7", n)
	}
}

func TestReplicaThatMissedTwoRotationsLoadsTheStore(t *testing.T) {
	t.Parallel()
	store, dir := &identitytest.Store{}, oneAccount()
	a, b := newReplica(t, store, dir, always), newReplica(t, store, dir, 0)
	for range 3 {
		a.rotate(t)
	}
	token := a.token(t, &someAccount)
	var wg sync.WaitGroup
	for range 8 { // concurrently: one load must serve all of them
		wg.Go(func() { b.accepts(t, token) })
	}
	wg.Wait()
}

func TestConcurrentRotationsAllSucceed(t *testing.T) {
	t.Parallel()
	store, dir := &identitytest.Store{}, oneAccount()
	var wg sync.WaitGroup
	for range 4 {
		r := newReplica(t, store, dir, always)
		wg.Go(func() {
			for range 5 {
				r.rotate(t)
			}
		})
	}
	wg.Wait()
	if n := len(newReplica(t, store, dir, 0).kids(t)); n != 22 {
		t.Errorf("%d keys after 20 rotations, want 22", n)
	}
}

func TestReplicasRotateOnceWhenDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, dir := &identitytest.Store{}, oneAccount()
		a, b := newReplica(t, store, dir, 24*time.Hour), newReplica(t, store, dir, 24*time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, r := range []replica{a, b} {
			go r.keys.Run(ctx, time.Minute, slog.New(slog.DiscardHandler))
		}
		time.Sleep(23 * time.Hour) // the bubble's clock
		synctest.Wait()
		if n := len(a.kids(t)); n != 2 {
			t.Errorf("%d keys before rotation is due, want 2", n)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := len(a.kids(t)); n != 3 {
			t.Errorf("%d keys after one rotation by either replica, want 3", n)
		}
		if !slices.Equal(a.kids(t), b.kids(t)) {
			t.Errorf("the replicas have keys %v and %v, want the same", a.kids(t), b.kids(t))
		}
	})
}

func TestTokensOfARemovedSigningKeyAreRejectedEvenIfCached(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, dir := &identitytest.Store{}, oneAccount()
	r := newReplica(t, store, dir, always)
	kid := r.kids(t)[0]
	token := r.token(t, &someAccount)
	r.rotate(t)
	r.accepts(t, token)
	data, revision, err := store.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	state["keys"] = slices.DeleteFunc(state["keys"].([]any),
		func(key any) bool { return key.(map[string]any)["kid"] == kid })
	if data, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	if err := store.Save(ctx, data, revision); err != nil {
		t.Fatal(err)
	}
	if err := r.keys.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.verifier.Authenticate(ctx, token, "aud"); !errors.Is(err, identity.ErrInvalidToken) {
		t.Errorf("token of a removed key: error = %v, want %v", err, identity.ErrInvalidToken)
	}
}

func TestJWKSContainsOnlyPublicKeys(t *testing.T) {
	t.Parallel()
	store := &identitytest.Store{}
	r := newReplica(t, store, oneAccount(), always)
	active := r.kids(t)[1]
	r.rotate(t)
	var set struct{ Keys []map[string]any }
	if err := json.Unmarshal(r.keys.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 3 {
		t.Fatalf("%d keys, want 3: active, next and retired", len(set.Keys))
	}
	for i, key := range set.Keys {
		if key["kty"] != "EC" || key["crv"] != "P-256" || key["alg"] != "ES256" || key["use"] != "sig" ||
			(i == 0) != (key["kid"] == active) {
			t.Errorf("key %d = %v, want one for ES256 signatures, the first with kid %s", i, key, active)
		}
		if _, ok := key["d"]; ok {
			t.Errorf("key %d contains its private key", i)
		}
	}
	// A client can verify a token with it.
	var parsed jose.JSONWebKeySet
	if err := json.Unmarshal(r.keys.JWKS(), &parsed); err != nil {
		t.Fatal(err)
	}
	signed, err := jose.ParseSignedCompact(r.token(t, &someAccount), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	key := parsed.Key(signed.Signatures[0].Header.KeyID)
	if len(key) != 1 {
		t.Fatal("kid of the token is not in the JWKS")
	}
	if _, err := signed.Verify(key[0].Key.(*ecdsa.PublicKey)); err != nil {
		t.Error(err)
	}
}

func TestStoredKeysAreEncryptedAndRetiredOnesHaveNoPrivateKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sealer := openSealer(t, filepath.Join(t.TempDir(), "seal.key"))
	raw := &identitytest.Store{}
	sealed := identity.SealedStore(raw, sealer, "keys")
	newReplica(t, sealed, oneAccount(), always).rotate(t)
	stored, _, _ := raw.Load(ctx)
	if bytes.Contains(stored, []byte("private")) || !identity.Sealed(stored) {
		t.Error("store contains the keys in clear text")
	}
	clear, _, err := sealed.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Keys []struct {
			Kid     string
			Retired time.Time
			Private []byte
		}
	}
	if err := json.Unmarshal(clear, &state); err != nil {
		t.Fatal(err)
	}
	for _, key := range state.Keys {
		if retired := !key.Retired.IsZero(); retired != (key.Private == nil) {
			t.Errorf("key %s: retired %v, has a private key %v", key.Kid, retired, key.Private != nil)
		}
	}
	if _, err := identity.OpenKeyring(ctx, identity.SealedStore(raw, sealer, "elsewhere"), 0); err == nil {
		t.Error("keys were decrypted under another name")
	}
}

func TestDamagedKeysAreRejected(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"not JSON":   `private!`,
		"version":    `{"version":7}`,
		"no keys":    `{"version":1}`,
		"bad public": `{"version":1,"active":"a","keys":[{"kid":"a","public":"AAAA","private":"AAAA"}]}`,
	} {
		store := &identitytest.Store{}
		if err := store.Save(context.Background(), []byte(data), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.OpenKeyring(context.Background(), store, 0); err == nil {
			t.Errorf("%s: OpenKeyring succeeds, want an error", name)
		}
	}
}

func TestSigningKeysFollowTheSealingKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sealer := openSealer(t, filepath.Join(t.TempDir(), "seal.key"))
	raw := &identitytest.Store{}
	r := newReplica(t, identity.SealedStore(raw, sealer, "keys"), oneAccount(), 0)
	token, before := r.token(t, &someAccount), r.kids(t)
	old := sealer.KeyIDs()[0]
	if _, err := sealer.Rotate(); err != nil {
		t.Fatal(err)
	}
	if stored, _, _ := raw.Load(ctx); !sealer.Stale(stored) {
		t.Error("stored keys are not stale after a rotation of the encryption key")
	}
	if err := r.keys.Reseal(ctx); err != nil {
		t.Fatal(err)
	}
	if stored, _, _ := raw.Load(ctx); sealer.Stale(stored) {
		t.Error("stored keys are still encrypted with the old key")
	}
	if _, err := sealer.Retire(old); err != nil {
		t.Fatal(err)
	}
	again := newReplica(t, identity.SealedStore(raw, sealer, "keys"), oneAccount(), 0)
	again.accepts(t, token)
	if !slices.Equal(again.kids(t), before) {
		t.Errorf("Reseal changed the keys to %v, want %v", again.kids(t), before)
	}
}

// conflictingStore rejects every Save as if another replica had changed it.
type conflictingStore struct{ identitytest.Store }

func (*conflictingStore) Save(context.Context, []byte, int64) error { return identity.ErrKeysChanged }

func TestChangingKeysGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	if _, err := identity.OpenKeyring(context.Background(), &conflictingStore{}, 0); !errors.Is(err,
		identity.ErrKeysChanged) {
		t.Errorf("error = %v, want %v", err, identity.ErrKeysChanged)
	}
}

// brokenStore fails to load while broken is set.
type brokenStore struct {
	identitytest.Store
	broken bool
}

func (s *brokenStore) Load(ctx context.Context) ([]byte, int64, error) {
	if s.broken {
		return nil, 0, errors.New("store is down")
	}
	return s.Store.Load(ctx)
}

func TestKnownTokensVerifyWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	store := &brokenStore{}
	r := newReplica(t, store, oneAccount(), 0)
	store.broken = true
	r.accepts(t, r.token(t, &someAccount))
	if err := r.keys.RotateWhenDue(context.Background()); err == nil {
		t.Error("RotateWhenDue returns no error while the store is down")
	}
}
