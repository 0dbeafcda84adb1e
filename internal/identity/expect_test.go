package identity_test

import (
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/identity"
)

func key(id, instance string) identity.Key {
	return identity.Key{ID: id, Name: "name-" + id, Organization: "acme", Account: "robot", AccountUID: "u1", Instance: instance, Hash: "h-" + id}
}

func TestKeysOfAnInstanceDieWithIt(t *testing.T) {
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
		t.Errorf("prod has %d keys", got)
	}
	d.DeleteKeysOf("acme", "") // not the way to delete an organization's keys
	d.DeleteKeysOf("acme", "none")
	d.DeleteKeysOf("acme", "prod")
	d.PutKey(key("a", "prod")) // a late event
	for id, want := range map[string]bool{"a": false, "b": false, "c": true, "d": true, "e": true} {
		if _, ok := d.Key(id); ok != want {
			t.Errorf("key %s is there: %v", id, ok)
		}
	}
	if _, ok := d.KeyNamed("acme", "name-a"); ok {
		t.Error("a deleted key has its name still")
	}
	for instance, want := range map[string]int{"prod": 0, "test": 1, "": 1} {
		if got := d.KeysOf("acme", instance); got != want {
			t.Errorf("instance %q has %d keys, want %d", instance, got, want)
		}
	}
	d.DeleteKey("c")
	if got := d.KeysOf("acme", "test"); got != 0 {
		t.Errorf("test has %d keys after its last is deleted", got)
	}
}

func TestExpectedKeysComeOrAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := identity.NewDirectory()
		d.PutKey(key("old", "prod"))
		never := key("never", "prod")
		never.Name = "name-old" // a create call that failed because the name was taken
		d.ExpectKey(never)
		d.ExpectKey(key("soon", "prod"))
		if _, ok := d.Key("soon"); !ok {
			t.Fatal("an expected key does not work")
		}
		if k, _ := d.KeyNamed("acme", "name-old"); k == nil || k.ID != "old" {
			t.Errorf("an expected key took the name of another: %+v", k)
		}
		if got := d.KeysOf("acme", "prod"); got != 1 {
			t.Errorf("%d keys count before any has come", got)
		}
		d.PutKey(key("soon", "prod"))
		if k, _ := d.KeyNamed("acme", "name-soon"); k == nil || k.ID != "soon" {
			t.Errorf("a key that came has no name: %+v", k)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, ok := d.Key("never"); ok {
			t.Error("a key that never came is still there")
		}
		if _, ok := d.Key("soon"); !ok {
			t.Error("a key that came was forgotten")
		}
		if got := d.KeysOf("acme", "prod"); got != 2 {
			t.Errorf("%d keys in the end", got)
		}
		// What is revoked or deleted does not come back by being expected.
		d.RevokeKey("soon")
		d.ExpectKey(key("soon", "prod"))
		if k, _ := d.Key("soon"); k == nil || !k.Revoked {
			t.Errorf("an expectation undid a revocation: %+v", k)
		}
		d.DeleteKey("soon")
		d.ExpectKey(key("soon", "prod"))
		if _, ok := d.Key("soon"); ok {
			t.Error("an expectation undid a deletion")
		}
		// What is expected goes with its instance too, also when nothing else is left.
		d.ExpectKey(key("first", "new"))
		d.DeleteKeysOf("acme", "new")
		d.PutKey(key("first", "new"))
		if _, ok := d.Key("first"); ok {
			t.Error("a key that was under way outlived its instance")
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
	// The controller may be quicker than the news of the account's creation.
	d.ExpectAccount(with("first"))
	d.PutAccount(account)
	if _, ok := d.AccountByClientID("first"); !ok {
		t.Error("expected credentials do not work")
	}
	// Only the first ones are expected: an older write must not take away newer
	// credentials, nor bring back an account.
	d.ExpectAccount(with("second"))
	if _, ok := d.AccountByClientID("first"); !ok {
		t.Error("an expectation replaced credentials")
	}
	newer := account
	newer.Revision = 7
	d.PutAccount(newer) // the credentials came to nothing: somebody else wrote first
	if _, ok := d.AccountByClientID("first"); ok {
		t.Error("credentials that were never stored work")
	}
	d.DeleteAccount("acme", "robot", "u1")
	d.ExpectAccount(with("third"))
	if _, ok := d.Account("acme", "robot"); ok {
		t.Error("an expectation brought an account back")
	}
}
