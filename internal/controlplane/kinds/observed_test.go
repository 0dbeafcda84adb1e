package kinds_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/identity"
)

// TestReplicasAreTold: another server that hears of nothing but Stored accepts a new
// key, and refuses a revoked one, when the call has returned.
func TestReplicasAreTold(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	replica, verifier := f.Replica()
	var mu sync.Mutex
	heard := map[string]int{}
	tell := func(c kinds.Change) {
		mu.Lock()
		defer mu.Unlock()
		heard[c.Kind]++
		if err := replica.Apply(c); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
		}
	}
	f.OnStored(tell)
	_, err := f.Admin.CloudV1alpha1().ServiceAccounts("acme").Patch(t.Context(), "ci", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := f.key("k", "")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := verifier.Authenticate(t.Context(), key.Status.Token, identity.OrganizationAudience("acme"))
		return err
	}
	if err := ask(); err != nil {
		t.Errorf("a new key: got %v, want it to be good elsewhere", err)
	}
	if _, err := f.Admin.CloudV1alpha1().APIKeys("acme").Patch(t.Context(), "k", types.MergePatchType,
		[]byte(`{"spec":{"revoke":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ask(); !errors.Is(err, identity.ErrKeyRevoked) {
		t.Errorf("a revoked key: got %v, want %v", err, identity.ErrKeyRevoked)
	}
	other, err := f.key("other", "")
	if err != nil {
		t.Fatal(err)
	}
	key = other
	if err := f.Admin.CloudV1alpha1().ServiceAccounts("acme").Delete(t.Context(), "ci",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err == nil {
		t.Error("a key of a deleted account is good elsewhere")
	}
	mu.Lock()
	defer mu.Unlock()
	if heard["ServiceAccount"] == 0 || heard["APIKey"] == 0 {
		t.Errorf("got %v, want both kinds", heard)
	}
	if err := replica.Apply(kinds.Change{Kind: "Pool"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a kind that nobody is told of: got %v, want it refused", err)
	}
}

// TestCatchUp: what is not stored any more is over, whatever news were missed.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	ghost, err := json.Marshal(
		&v1alpha1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "acme", Name: "ghost", UID: "ghost",
			ResourceVersion: "2",
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Set.Apply(kinds.Change{Kind: "ServiceAccount", Object: ghost}); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Directory.Account("acme", "ghost"); !ok {
		t.Fatal("got no account, want the one that was told of")
	}
	if err := f.Controllers.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Directory.Account("acme", "ghost"); ok {
		t.Error("an account that is not stored is there")
	}
	if _, ok := f.Directory.Account("acme", "ci"); !ok {
		t.Error("an account that is stored is gone")
	}
}
