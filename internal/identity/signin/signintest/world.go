// Package signintest creates a sign-in service for tests over a real store: an embedded
// etcd in a temporary directory, with an identity system. Only tests import it.
package signintest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/etcdstore"
)

// Prefix is the prefix of the records in etcd.
const Prefix = "/test/signin/"

// World is a sign-in service with the system administrator's account default/admin.
type World struct {
	*identitytest.World
	SignIn *signin.Service
	Etcd   *clientv3.Client

	t    testing.TB
	edit []func(*signin.Options)
}

// New returns a World that exists until the end of the test.
func New(t testing.TB, edit ...func(*signin.Options)) *World {
	t.Helper()
	member, err := etcd.Start(context.Background(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := member.Close(); err != nil {
			t.Errorf("closing etcd: %v", err)
		}
	})
	client, err := member.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	w := &World{World: identitytest.New(t), Etcd: client, t: t, edit: edit}
	w.Account("default", "admin", func(a *identity.Account) { a.Admin, a.System = true, true })
	w.SignIn = w.Replica(w.Directory)
	w.Directory.SetSessionLoader(w.SignIn.Grants)
	return w
}

// Store returns a store of the records.
func (w *World) Store() *etcdstore.Store {
	return etcdstore.New(w.Etcd, Prefix, w.Sealer, slog.New(slog.DiscardHandler))
}

// Replica returns a service over the same records, like another process, or this one after
// a restart. The directory contains all stored sessions.
func (w *World) Replica(directory *identity.Directory) *signin.Service {
	w.t.Helper()
	opts := signin.Options{
		Store: w.Store(), Directory: directory, Issuer: w.Issuer, Audience: identitytest.IssuerURL,
		TokenLifetime: 10 * time.Minute, SessionLifetime: time.Hour, DeviceLifetime: time.Hour,
		RefreshGrace:      time.Minute,
		AdminOrganization: "default", AdminAccount: "admin", Log: slog.New(slog.DiscardHandler),
	}
	for _, e := range w.edit {
		e(&opts)
	}
	s := signin.New(opts)
	if err := s.Load(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// User adds a user. The uid is derived from organization, name and e-mail address.
func (w *World) User(organization, name, email string) signin.Subject {
	user := identity.User{
		Organization: organization, Name: name, Email: email,
		UID: "uid-" + organization + "-" + name + "-" + strings.ToLower(email),
	}
	w.Directory.PutUser(user)
	return signin.Subject{Organization: organization, User: name, UID: user.UID, Email: email}
}

// Password is the password that Invite sets.
const Password = "correct horse battery"

// Invite invites a user and sets Password with the invitation.
func (w *World) Invite(of signin.Subject) {
	w.t.Helper()
	token, _, err := w.SignIn.Links.Invite(w.t.Context(), of.Organization, of.User, "test", time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.SignIn.Passwords.Accept(w.t.Context(), token.Reveal(), Password); err != nil {
		w.t.Fatal(err)
	}
}

// Records returns the keys of all records.
func (w *World) Records() []string {
	w.t.Helper()
	var keys []string
	if _, err := w.Store().List(w.t.Context(),
		func(key string, _ []byte, _ int64) { keys = append(keys, key) }); err != nil {
		w.t.Fatal(err)
	}
	return keys
}
