package atrest_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/internal/identity/atrest"
)

func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	member, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Close() }) // its data is not needed any more
	client, err := member.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestReseal rotates the encryption key. All secrets are sealed with the new key afterwards, the
// record reports it, and other values stay as they are.
func TestReseal(t *testing.T) {
	t.Parallel()
	client := startEtcd(t)
	dir := t.TempDir()
	keyFile, record := filepath.Join(dir, "encryption.key"), filepath.Join(dir, atrest.RecordFile)
	sealer, err := identity.OpenSealer(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	store := identity.SealedStore(atrest.KeyStore{Etcd: client, Key: "/x/signing-keys"}, sealer, "signing-keys")
	keys, err := identity.OpenKeyring(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	signing := slices.Sorted(slices.Values(keys.IDs()))
	const secret, plain, other = "/x/resources/secret", "/x/resources/plain", "/y/resources/secret"
	for key, seal := range map[string]bool{secret: true, plain: false, other: true} {
		value := []byte("value of " + key)
		if seal {
			if value, err = sealer.Seal(value, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.Put(t.Context(), key, string(value)); err != nil {
			t.Fatal(err)
		}
	}
	old := sealer.KeyIDs()[0]
	active, err := sealer.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := atrest.ReadRecord(record, active); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("before the pass: got %v, want an error of kind unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &atrest.Resealer{
		Etcd: client, Prefixes: []string{"/x/resources/"}, SigningKeys: "/x/signing-keys", Sealer: sealer, Keys: keys,
		KeyFile: keyFile, Record: record, Log: slog.New(stopWhenSealed{slog.DiscardHandler, cancel}),
	}
	r.Run(ctx)
	counts, err := atrest.ReadRecord(record, active)
	if err != nil || !maps.Equal(counts, map[string]int{active: 2}) {
		t.Errorf("record: got %v, %v; want 2 secrets of the active key", counts, err)
	}
	if counts, err := atrest.Count(t.Context(), client, "/x"); err != nil || counts[active] != 2 || counts[old] != 0 {
		t.Errorf("Count: got %v, %v; want 2 secrets of the active key and none of the old one", counts, err)
	}
	if counts, err := atrest.Count(t.Context(), client, "/y"); err != nil || counts[old] != 1 {
		t.Errorf("Count of another prefix: got %v, %v; want 1 secret of the old key", counts, err)
	}
	found, err := client.Get(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := sealer.Open(found.Kvs[0].Value, []byte(secret)); err != nil || string(text) != "value of "+secret {
		t.Errorf("resealed value: got %q, %v; want the same text", text, err)
	}
	again, err := identity.OpenKeyring(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(slices.Values(again.IDs())); !slices.Equal(got, signing) {
		t.Errorf("resealed signing keys: got %v, want %v", got, signing)
	}
}

// stopWhenSealed calls stop when the Resealer reports that it is done.
type stopWhenSealed struct {
	slog.Handler
	stop func()
}

// Enabled implements slog.Handler.
func (stopWhenSealed) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (s stopWhenSealed) Handle(context.Context, slog.Record) error {
	s.stop()
	return nil
}

// TestKeyStoreRejectsAConflict checks that of two replicas that change the keys only one succeeds.
func TestKeyStoreRejectsAConflict(t *testing.T) {
	t.Parallel()
	store := atrest.KeyStore{Etcd: startEtcd(t), Key: "/x/signing-keys"}
	data, revision, err := store.Load(t.Context())
	if err != nil || data != nil || revision != 0 {
		t.Fatalf("empty store: got %q, %d, %v; want nothing", data, revision, err)
	}
	if err := store.Save(t.Context(), []byte("first"), 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Save(t.Context(), []byte("second"), 0); !errors.Is(err, identity.ErrKeysChanged) {
		t.Errorf("Save with an outdated revision: got %v, want %v", err, identity.ErrKeysChanged)
	}
	data, revision, err = store.Load(t.Context())
	if err != nil || string(data) != "first" || revision == 0 {
		t.Errorf("got %q, %d, %v; want first", data, revision, err)
	}
	if err := store.Save(t.Context(), []byte("third"), revision); err != nil {
		t.Error(err)
	}
}

// TestRecordOfAnotherKey checks that a record from before a rotation is not used.
func TestRecordOfAnotherKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), atrest.RecordFile)
	for text, want := range map[string]bool{
		`{"active":"new","sealed":{"new":3}}`: true, `{"active":"old","sealed":{"old":3}}`: false, "damaged": false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		counts, err := atrest.ReadRecord(path, "new")
		if (err == nil) != want || want && counts["new"] != 3 {
			t.Errorf("record %s: got %v, %v; want success %v", text, counts, err, want)
		}
	}
}
