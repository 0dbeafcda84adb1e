package identity_test

import (
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/identity"
)

func key(id, instance string) identity.Key {
	return identity.Key{
		ID: id, Name: "name-" + id, Organization: "acme", Account: "robot", AccountUID: "u1",
		Instance: instance, Hash: "h-" + id,
	}
}

func TestDeleteInstanceDeletesItsKeys(t *testing.T) {
	t.Parallel()
	d := identity.NewDirectory()
	d.PutKey(key("a", "prod"))
	d.PutKey(key("b", "prod"))
	d.PutKey(key("c", "test"))
	d.PutKey(key("d", ""))
	other := key("e", "prod")
	other.Organization = "globex"
	d.PutKey(other)
	if got := d.KeysOf("acme", "prod"); got != 2 {
		t.Errorf("prod has %d keys, want 2", got)
	}
	d.DeleteInstance("acme", "") // must not delete the keys of the organization
	d.DeleteInstance("acme", "none")
	d.DeleteInstance("acme", "prod")
	d.PutKey(key("a", "prod")) // a late event
	for id, want := range map[string]bool{"a": false, "b": false, "c": true, "d": true, "e": true} {
		if _, ok := d.Key(id); ok != want {
			t.Errorf("key %s exists: %v, want %v", id, ok, want)
		}
	}
	for instance, want := range map[string]int{"prod": 0, "test": 1, "": 1} {
		if got := d.KeysOf("acme", instance); got != want {
			t.Errorf("instance %q has %d keys, want %d", instance, got, want)
		}
	}
	d.DeleteKey("c")
	if got := d.KeysOf("acme", "test"); got != 0 {
		t.Errorf("test has %d keys after its last is deleted, want 0", got)
	}
}

func TestExpectedKeysAreStoredOrRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := identity.NewDirectory()
		d.PutKey(key("old", "prod"))
		d.ExpectKey(key("never", "prod")) // a create call that failed
		d.ExpectKey(key("soon", "prod"))
		if _, ok := d.Key("soon"); !ok {
			t.Fatal("expected key does not exist")
		}
		if got := d.KeysOf("acme", "prod"); got != 1 {
			t.Errorf("KeysOf = %d before the expected keys are stored, want 1", got)
		}
		d.PutKey(key("soon", "prod"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, ok := d.Key("never"); ok {
			t.Error("key that was never stored still exists")
		}
		if _, ok := d.Key("soon"); !ok {
			t.Error("stored key was removed")
		}
		if got := d.KeysOf("acme", "prod"); got != 2 {
			t.Errorf("KeysOf = %d at the end, want 2", got)
		}
		// ExpectKey does not undo a revocation or a deletion.
		revoked := key("soon", "prod")
		revoked.Revoked = true
		d.PutKey(revoked)
		d.ExpectKey(key("soon", "prod"))
		if k, _ := d.Key("soon"); k == nil || !k.Revoked {
			t.Errorf("ExpectKey undid a revocation: %+v", k)
		}
		d.DeleteKey("soon")
		d.ExpectKey(key("soon", "prod"))
		if _, ok := d.Key("soon"); ok {
			t.Error("ExpectKey undid a deletion")
		}
		// DeleteInstance also deletes an expected key if it is the only key.
		d.ExpectKey(key("first", "new"))
		d.DeleteInstance("acme", "new")
		d.PutKey(key("first", "new"))
		if _, ok := d.Key("first"); ok {
			t.Error("expected key exists after its instance was deleted")
		}
	})
}

func TestExpectedCredentials(t *testing.T) {
	t.Parallel()
	d := identity.NewDirectory()
	account := identity.Account{Organization: "acme", Name: "robot", UID: "u1", Revision: 5}
	with := func(client string) identity.Account {
		a := account
		a.ClientID, a.SecretHash = client, "hash"
		return a
	}
	// The controller may call ExpectAccount before the account's creation is reported.
	d.ExpectAccount(with("first"))
	d.PutAccount(account)
	if _, ok := d.AccountByClientID("first"); !ok {
		t.Error("expected credentials do not work")
	}
	// ExpectAccount only adds first credentials: an older write must not replace newer
	// credentials or bring back an account.
	d.ExpectAccount(with("second"))
	if _, ok := d.AccountByClientID("first"); !ok {
		t.Error("ExpectAccount replaced credentials")
	}
	newer := account
	newer.Revision = 7
	d.PutAccount(newer) // the credentials were not stored: another write came first
	if _, ok := d.AccountByClientID("first"); ok {
		t.Error("credentials work that were never stored")
	}
	d.DeleteAccount("acme", "robot", "u1")
	d.ExpectAccount(with("third"))
	if _, ok := d.Account("acme", "robot"); ok {
		t.Error("ExpectAccount brought a deleted account back")
	}
}
