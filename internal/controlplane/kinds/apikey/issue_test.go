package apikey_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/kinds/apikey"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
)

func newKind(t *testing.T) (*apikey.Kind, *identitytest.World) {
	t.Helper()
	world := identitytest.New(t)
	return apikey.New(world.Issuer, world.Directory, access.NewPolicy(), slog.New(slog.DiscardHandler)), world
}

func newKey(account string, change ...func(*v1alpha1.APIKey)) *v1alpha1.APIKey {
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "k", UID: types.UID("uid-" + account)},
		Spec:       v1alpha1.APIKeySpec{ServiceAccountName: account},
	}
	for _, c := range change {
		c(key)
	}
	return key
}

func ends(at time.Time) func(*v1alpha1.APIKey) {
	return func(key *v1alpha1.APIKey) { end := metav1.NewTime(at); key.Spec.ExpirationTime = &end }
}

func summary(key *v1alpha1.APIKey) string {
	var parts []string
	for _, c := range key.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	return strings.Join(parts, " ")
}

func TestIssue(t *testing.T) {
	t.Parallel()
	kind, world := newKind(t)
	world.Account("acme", "robot")
	tests := map[string]struct {
		key    *v1alpha1.APIKey
		want   string
		issued bool
	}{
		"immediately": {newKey("robot"), "Issued=True Expired=False Revoked=False", true},
		"with an end": {
			newKey("robot", ends(time.Now().Add(time.Hour))),
			"Issued=True Expired=False Revoked=False", true,
		},
		"too late": {
			newKey("robot", ends(time.Now().Add(-time.Hour))),
			"Issued=False Expired=True Revoked=False", false,
		},
		"too early": {newKey("nobody"), "Issued=False Expired=False Revoked=False", false},
		"revoked at creation": {
			newKey("robot", func(k *v1alpha1.APIKey) { k.Spec.Revoke = true }),
			"Issued=False Expired=False Revoked=True", false,
		},
		"being deleted": {newKey("robot", func(k *v1alpha1.APIKey) {
			now := metav1.Now()
			k.DeletionTimestamp = &now
		}), "Issued=False Expired=False Revoked=False", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind.Finish(tc.key)
			if got := summary(tc.key); got != tc.want {
				t.Errorf("conditions: got %s, want %s", got, tc.want)
			}
			if got := tc.key.Status.KeyID != "" && tc.key.Status.IssuedAt != nil &&
				tc.key.Status.TokenHash != ""; got != tc.issued {
				t.Errorf("issued: got %v, want %v: %+v", got, tc.issued, tc.key.Status)
			}
			if tc.key.Status.Token != "" {
				t.Error("token is in the status that will be stored")
			}
		})
	}
}

func TestRevealShowsATokenOnce(t *testing.T) {
	t.Parallel()
	kind, world := newKind(t)
	world.Account("acme", "robot")
	key := newKey("robot")
	kind.Finish(key)
	for i, want := range []bool{true, false} {
		shown := key.DeepCopy()
		kind.Reveal(shown)
		if got := shown.Status.Token != ""; got != want {
			t.Errorf("read %d: got token shown %v, want %v", i+1, got, want)
		}
		if want && identity.HashToken(identity.NewSecret(shown.Status.Token)) != key.Status.TokenHash {
			t.Error("shown token differs from the issued one")
		}
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	kind, world := newKind(t)
	account, _ := world.Account("acme", "robot")
	key := newKey("robot")
	for range 2 {
		kind.PrepareCreate(t.Context(), key)
	}
	if len(key.OwnerReferences) != 1 || string(key.OwnerReferences[0].UID) != account.UID ||
		!*key.OwnerReferences[0].Controller {
		t.Errorf("owners: got %+v, want the account", key.OwnerReferences)
	}
	orphan := newKey("nobody")
	kind.PrepareCreate(t.Context(), orphan)
	if len(orphan.OwnerReferences) != 0 {
		t.Errorf("owners of a key without an account: got %+v, want none", orphan.OwnerReferences)
	}
}

func as(p *identity.Principal) context.Context {
	return request.WithUser(context.Background(), caller.Caller{Principal: p})
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	kind, world := newKind(t)
	world.Account("acme", "robot")
	world.Account("acme", "boss", func(a *identity.Account) { a.Admin = true })
	world.Account("acme", "root", func(a *identity.Account) { a.System = true })
	callers := map[string]*identity.Principal{
		"the service": nil,
		"root":        {Name: "root", Organization: "default", System: true},
		"boss":        {Name: "boss", Organization: "acme", Admin: true},
		"robot":       {Name: "robot", Organization: "acme", ServiceAccount: "robot"},
		"stranger":    {Name: "stranger", Organization: "globex", Admin: true},
	}
	for _, tc := range []struct {
		caller, account string
		want            bool
	}{
		{"the service", "root", true},
		{"root", "root", true},
		{"root", "not-yet", true},
		{"boss", "robot", true},
		{"boss", "boss", true},
		{"boss", "root", false},
		{"boss", "not-yet", true},
		{"robot", "robot", true},
		{"robot", "boss", false},
		{"robot", "not-yet", false},
		{"stranger", "robot", false},
	} {
		ctx := t.Context()
		if p := callers[tc.caller]; p != nil {
			ctx = as(p)
		}
		if err := kind.Admit(ctx, newKey(tc.account), nil); (err == nil) != tc.want {
			t.Errorf("%s creates a key of %s: got error %v, want allowed %v", tc.caller, tc.account, err, tc.want)
		}
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	kind, world := newKind(t)
	boss := as(&identity.Principal{Name: "boss", Organization: "acme", Admin: true})
	world.Account("acme", "robot")
	in := func(instance string) func(*v1alpha1.APIKey) {
		return func(k *v1alpha1.APIKey) { k.Spec.InstanceName = instance }
	}
	for i := range apikey.MaxKeys {
		world.Directory.PutKey(identity.Key{ID: fmt.Sprint(i), Organization: "acme", Instance: "full"})
	}
	err := kind.Admit(boss, newKey("robot", in("full")), nil)
	if err == nil || !strings.Contains(err.Error(), "exceeded quota: instance full") {
		t.Errorf("key beyond the limit: got %v, want exceeded quota", err)
	}
	for _, instance := range []string{"other", ""} {
		if err := kind.Admit(boss, newKey("robot", in(instance)), nil); err != nil {
			t.Errorf("key of instance %q: %v", instance, err)
		}
	}
}
