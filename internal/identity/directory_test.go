package identity_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"freshet/internal/identity"
)

func account(uid, client string, revision int64) identity.Account {
	return identity.Account{Organization: "acme", Name: "ci", UID: uid, ClientID: client, Revision: revision}
}

func TestDirectoryKeepsTheNewestAccount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do     func(*identity.Directory)
		uid    string // "" for gone
		client string
	}{
		"put": {func(d *identity.Directory) { d.PutAccount(account("u1", "c1", 5)) }, "u1", "c1"},
		"older revision is ignored": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.PutAccount(account("u1", "c0", 4))
		}, "u1", "c1"},
		"new credentials": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.PutAccount(account("u1", "c2", 6))
		}, "u1", "c2"},
		"deleted": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.DeleteAccount("acme", "ci", "u1")
		}, "", ""},
		"deleted by name": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.DeleteAccount("acme", "ci", "")
		}, "", ""},
		"late event after deletion": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.DeleteAccount("acme", "ci", "u1")
			d.PutAccount(account("u1", "c1", 9))
		}, "", ""},
		"deletion before creation": {func(d *identity.Directory) {
			d.DeleteAccount("acme", "ci", "u1")
			d.PutAccount(account("u1", "c1", 5))
		}, "", ""},
		"recreated": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.DeleteAccount("acme", "ci", "u1")
			d.PutAccount(account("u2", "c2", 7))
		}, "u2", "c2"},
		"recreation seen before deletion": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.PutAccount(account("u2", "c2", 7))
			d.DeleteAccount("acme", "ci", "u1")
		}, "u2", "c2"},
		"predecessor does not come back": {func(d *identity.Directory) {
			d.PutAccount(account("u1", "c1", 5))
			d.PutAccount(account("u2", "c2", 7))
			d.PutAccount(account("u1", "c1", 0))
		}, "u2", "c2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := identity.NewDirectory()
			tc.do(d)
			got, ok := d.Account("acme", "ci")
			if ok != (tc.uid != "") || (ok && (got.UID != tc.uid || got.ClientID != tc.client)) {
				t.Errorf("Account = %+v, %v; want uid %q, client id %q", got, ok, tc.uid, tc.client)
			}
			for _, client := range []string{"c0", "c1", "c2"} {
				if _, ok := d.AccountByClientID(client); ok != (client == tc.client) {
					t.Errorf("client id %s exists: %v, want %v", client, ok, client == tc.client)
				}
			}
		})
	}
}

func TestClientIDStaysWithItsFirstAccount(t *testing.T) {
	t.Parallel()
	d := identity.NewDirectory()
	d.PutAccount(identity.Account{Organization: "acme", Name: "victim", UID: "u1", ClientID: "c1"})
	d.PutAccount(identity.Account{Organization: "evil", Name: "thief", UID: "u2", ClientID: "c1"})
	if got, ok := d.AccountByClientID("c1"); !ok || got.Name != "victim" {
		t.Errorf("client id belongs to %+v, want victim", got)
	}
	d.DeleteAccount("evil", "thief", "u2")
	if got, ok := d.AccountByClientID("c1"); !ok || got.Name != "victim" {
		t.Errorf("after the other account is deleted, client id belongs to %+v, want victim", got)
	}
}

func TestRevokedAndDeletedKeysStaySo(t *testing.T) {
	t.Parallel()
	key := func(revoked bool, revision int64) identity.Key {
		return identity.Key{
			ID: "k1", Name: "n", Organization: "acme", Account: "ci", Revoked: revoked,
			Revision: revision,
		}
	}
	tests := map[string]struct {
		do               func(*identity.Directory)
		present, revoked bool
	}{
		"put": {func(d *identity.Directory) { d.PutKey(key(false, 1)) }, true, false},
		"revoked": {
			func(d *identity.Directory) { d.PutKey(key(false, 1)); d.PutKey(key(true, 2)) },
			true, true,
		},
		"revoked from the start": {func(d *identity.Directory) { d.PutKey(key(true, 1)) }, true, true},
		"revoked without revision": {
			func(d *identity.Directory) { d.PutKey(key(false, 1)); d.PutKey(key(true, 0)) },
			true, true,
		},
		"unrevoking": {func(d *identity.Directory) { d.PutKey(key(true, 1)); d.PutKey(key(false, 2)) }, true, true},
		"late event": {func(d *identity.Directory) {
			d.PutKey(key(false, 1))
			d.PutKey(key(true, 2))
			d.PutKey(key(false, 1))
		}, true, true},
		"late revocation": {
			func(d *identity.Directory) { d.PutKey(key(false, 5)); d.PutKey(key(true, 2)) },
			true, true,
		},
		"deleted": {func(d *identity.Directory) { d.PutKey(key(false, 1)); d.DeleteKey("k1") }, false, false},
		"late event after delete": {func(d *identity.Directory) {
			d.PutKey(key(false, 1))
			d.DeleteKey("k1")
			d.PutKey(key(false, 2))
		}, false, false},
		"late revocation, deleted": {
			func(d *identity.Directory) { d.DeleteKey("k1"); d.PutKey(key(true, 1)) },
			false, false,
		},
		"deleting before creation": {
			func(d *identity.Directory) { d.DeleteKey("k1"); d.PutKey(key(false, 1)) },
			false, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := identity.NewDirectory()
			tc.do(d)
			got, ok := d.Key("k1")
			if ok != tc.present {
				t.Fatalf("present = %v, want %v", ok, tc.present)
			}
			if ok && (got.ID != "k1" || got.Revoked != tc.revoked) {
				t.Errorf("Key = %+v, want k1 with Revoked %v", got, tc.revoked)
			}
		})
	}
}

func TestDirectoryUnderConcurrentUse(t *testing.T) {
	t.Parallel()
	d := identity.NewDirectory()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 500 {
				id := fmt.Sprintf("k%d-%d", worker, i)
				d.PutAccount(identity.Account{Organization: "acme", Name: id, UID: id, ClientID: id})
				d.PutKey(identity.Key{ID: id, Name: id, Organization: "acme", Account: id, AccountUID: id})
				d.PutKey(identity.Key{
					ID: id, Name: id, Organization: "acme", Account: id, AccountUID: id,
					Revoked: true,
				})
				if _, ok := d.Account("acme", id); !ok {
					t.Error("account is missing after PutAccount")
				}
				if i%2 == 0 {
					d.DeleteKey(id)
					d.DeleteAccount("acme", id, id)
				}
			}
		})
	}
	wg.Wait()
	if accounts, keys := d.Len(); accounts != 1000 || keys != 1000 {
		t.Errorf("Len = %d accounts, %d keys; want 1000, 1000", accounts, keys)
	}
}

func BenchmarkDirectoryHundredThousandKeys(b *testing.B) {
	d := identity.NewDirectory()
	for i := range 100_000 {
		id := fmt.Sprintf("key-%d", i)
		d.PutKey(identity.Key{ID: id, Organization: "acme", Account: "ci", AccountUID: "u", ExpiresAt: time.Now()})
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			d.Key("key-77777")
		}
	})
	b.Run("put", func(b *testing.B) {
		k := identity.Key{ID: "key-77777", Organization: "acme", Account: "ci", AccountUID: "u"}
		for b.Loop() {
			k.Revision++
			d.PutKey(k)
		}
	})
}
