package identity_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

func openSealer(t *testing.T, path string) *identity.Sealer {
	t.Helper()
	s, err := identity.OpenSealer(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seal(t *testing.T, s *identity.Sealer, text, associated string) []byte {
	t.Helper()
	sealed, err := s.Seal([]byte(text), []byte(associated))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestOpenRejectsChangedAndMovedData(t *testing.T) {
	t.Parallel()
	s := openSealer(t, filepath.Join(t.TempDir(), "seal.key"))
	sealed := seal(t, s, "the quick brown fox", "place/1")
	if bytes.Contains(sealed, []byte("quick")) {
		t.Fatal("sealed data contains the plaintext")
	}
	if got, err := s.Open(sealed, []byte("place/1")); err != nil || string(got) != "the quick brown fox" {
		t.Fatalf("Open = %q, %v; want the plaintext", got, err)
	}
	if _, err := s.Open(sealed, []byte("place/2")); !errors.Is(err, identity.ErrUnsealable) {
		t.Errorf("other associated data: error = %v, want %v", err, identity.ErrUnsealable)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := s.Open(changed, []byte("place/1")); err == nil {
			t.Fatalf("Open succeeds with byte %d changed", i)
		}
	}
	for n := range len(sealed) {
		if _, err := s.Open(sealed[:n], []byte("place/1")); err == nil {
			t.Fatalf("Open succeeds after truncation to %d bytes", n)
		}
	}
	if bytes.Equal(sealed, seal(t, s, "the quick brown fox", "place/1")) {
		t.Error("Seal returned the same bytes twice")
	}
}

func TestConcurrentOpenCreatesOneKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seal.key")
	sealers := make([]*identity.Sealer, 8)
	var wg sync.WaitGroup
	for i := range sealers {
		wg.Go(func() { sealers[i], _ = identity.OpenSealer(path) })
	}
	wg.Wait()
	sealed := seal(t, sealers[0], "shared", "")
	for i, s := range sealers {
		if got, err := s.Open(sealed, nil); err != nil || string(got) != "shared" {
			t.Errorf("process %d cannot open: %v", i, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("key file has mode %v, want 0600", info.Mode())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("folder contains %v, %v; want only the key file", entries, err)
	}
}

func TestRotatingTheSealingKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seal.key")
	one, two := openSealer(t, path), openSealer(t, path)
	old := seal(t, one, "old", "")
	first := one.KeyIDs()[0]
	second, err := one.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	fresh := seal(t, one, "fresh", "")
	if !one.Stale(old) || one.Stale(fresh) || !one.Stale([]byte("in clear")) {
		t.Error("Stale does not distinguish data of the old key from data of the new key")
	}
	if got, err := two.Open(fresh, nil); err != nil || string(got) != "fresh" {
		t.Errorf("other process does not load the new key: %q, %v", got, err)
	}
	if _, err := one.Retire(second); errs.KindOf(err) != errs.Conflict {
		t.Errorf("retiring the active key: %v, want a conflict", err)
	}
	if _, err := one.Retire("0123456789abcdef"); errs.KindOf(err) != errs.NotFound ||
		!strings.Contains(err.Error(), first) {
		t.Errorf("retiring a key that does not exist: %v, want an error that contains %s", err, first)
	}
	before, err := one.Retire(first)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := openSealer(t, before).Open(old, nil); err != nil || string(got) != "old" {
		t.Errorf("copy of the key file decrypts %q, %v, want old", got, err)
	}
	if _, err := one.Open(old, nil); !errors.Is(err, identity.ErrSealKeyMissing) {
		t.Errorf("data of a retired key: error = %v, want %v", err, identity.ErrSealKeyMissing)
	}
	if got := openSealer(t, path).KeyIDs(); len(got) != 1 || got[0] != second {
		t.Errorf("key file contains %v, want only %s", got, second)
	}
}

func TestAddedKeyDoesNotEncryptYet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seal.key")
	s := openSealer(t, path)
	first := s.KeyIDs()[0]
	added, err := s.AddKey()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.KeyIDs(); got[0] != first || len(got) != 2 {
		t.Errorf("keys = %v, want two with %s first, because an added key does not encrypt yet", got, first)
	}
	if err := s.Activate(added); err != nil {
		t.Fatal(err)
	}
	if got := s.KeyIDs(); got[0] != added {
		t.Errorf("active key is %s, want %s", got[0], added)
	}
	if err := s.Activate("0000000000000000"); err == nil {
		t.Error("Activate succeeds for a key that does not exist")
	}
}

func TestSecretHashesSurviveRotationAndDistinguishSecrets(t *testing.T) {
	t.Parallel()
	s := openSealer(t, filepath.Join(t.TempDir(), "seal.key"))
	secret := identity.GenerateSecret()
	hash := s.HashSecret(secret)
	if strings.Contains(hash, secret.Reveal()) {
		t.Fatal("hash contains the secret")
	}
	if _, err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	if !s.CheckSecret(hash, secret) {
		t.Error("CheckSecret rejects the secret after a rotation")
	}
	for name, bad := range map[string]string{
		"empty":       "",
		"no sum":      "h1.",
		"unknown key": "h1.0000000000000000.AAAA",
		"cut":         hash[:len(hash)-3],
		"not hex":     "h1.zz.AAAA",
	} {
		if s.CheckSecret(bad, secret) {
			t.Errorf("CheckSecret accepts the hash %s", name)
		}
	}
	if s.CheckSecret(hash, identity.GenerateSecret()) || s.CheckSecret(hash, identity.Secret{}) {
		t.Error("CheckSecret accepts a wrong secret")
	}
	other := openSealer(t, filepath.Join(t.TempDir(), "seal.key"))
	if other.CheckSecret(hash, secret) {
		t.Error("hash does not depend on the key")
	}
}

func TestInvalidKeyFilesAreRejectedWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	const secret = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
	tests := map[string]struct {
		mode os.FileMode
		text string
		want string
	}{
		"readable by all": {0o644, `{}`, "0600"},
		"writable":        {0o620, `{}`, "0600"},
		"not JSON":        {0o600, secret, "not valid JSON"},
		"empty":           {0o600, ``, "not valid JSON"},
		"version":         {0o600, `{"version":9}`, "version 9"},
		"no active":       {0o600, `{"version":1}`, "no active key"},
		"short key": {
			0o600, `{"version":1,"active":"00","keys":[{"id":"0011223344556677","key":"QUJD"}]}`,
			"damaged",
		},
		"no time": {
			0o600, `{"version":1,"keys":[{"id":"0011223344556677","key":"` + secret + `"}]}`,
			"creation time",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "seal.key")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tc.mode); err != nil {
				t.Fatal(err)
			}
			_, err := identity.OpenSealer(path)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one about %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("error quotes the key: %v", err)
			}
		})
	}
}

func TestOpeningFailuresAreInternal(t *testing.T) {
	t.Parallel()
	s := openSealer(t, filepath.Join(t.TempDir(), "seal.key"))
	if _, err := s.Open([]byte("short"), nil); errs.KindOf(err) != errs.Internal {
		t.Errorf("kind = %v, want %v", errs.KindOf(err), errs.Internal)
	}
}

func BenchmarkSeal(b *testing.B) {
	s, err := identity.OpenSealer(filepath.Join(b.TempDir(), "seal.key"))
	if err != nil {
		b.Fatal(err)
	}
	text := make([]byte, 1024)
	for b.Loop() {
		if _, err := s.Seal(text, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTheKeyFileKeepsItsOwner checks that a server that runs as another user can read the
// key file after root has rotated the keys.
func TestTheKeyFileKeepsItsOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can change the owner of files")
	}
	const owner, group, mode = 12345, 23456, 0o640
	path := filepath.Join(t.TempDir(), "seal.key")
	s := openSealer(t, path)
	if err := errors.Join(os.Chown(path, owner, group), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	first := s.KeyIDs()[0]
	check := func(path string) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		got := info.Sys().(*syscall.Stat_t)
		if got.Uid != owner || got.Gid != group || info.Mode().Perm() != mode {
			t.Errorf("%s belongs to %d:%d with mode %o, want %d:%d with %o", path, got.Uid, got.Gid, info.Mode().Perm(),
				owner, group, mode)
		}
	}
	if _, err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	check(path)
	before, err := s.Retire(first)
	if err != nil {
		t.Fatal(err)
	}
	check(path)
	check(before)
}
