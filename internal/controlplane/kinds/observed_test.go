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

// TestChangesReachReplicas checks that another server, which receives changes through Stored only,
// accepts a new key and rejects a revoked one when the call has returned.
func TestChangesReachReplicas(t *testing.T) {
	t.Parallel()
	f := startWithAccount(t)
	replica, verifier := f.Replica()
	receiver := &receiver{t: t, set: replica, received: map[string]int{}}
	f.Notify(receiver)
	_, err := f.Admin.CloudV1alpha1().ServiceAccounts("acme").Patch(t.Context(), "ci", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := f.key("k", "")
	if err != nil {
		t.Fatal(err)
	}
	authenticate := func() error {
		_, err := verifier.Authenticate(t.Context(), key.Status.Token, identity.OrganizationAudience("acme"))
		return err
	}
	if err := authenticate(); err != nil {
		t.Errorf("new key on the other server: got %v, want it accepted", err)
	}
	if _, err := f.Admin.CloudV1alpha1().APIKeys("acme").Patch(t.Context(), "k", types.MergePatchType,
		[]byte(`{"spec":{"revoke":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := authenticate(); !errors.Is(err, identity.ErrKeyRevoked) {
		t.Errorf("revoked key on the other server: got %v, want %v", err, identity.ErrKeyRevoked)
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
	if err := authenticate(); err == nil {
		t.Error("key of a deleted account is accepted on the other server")
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if receiver.received["ServiceAccount"] == 0 || receiver.received["APIKey"] == 0 {
		t.Errorf("changes by kind: got %v, want both kinds", receiver.received)
	}
	if err := replica.Apply(kinds.Change{Kind: "Pool"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("change of a kind without an observer: got %v, want an error", err)
	}
}

// receiver applies changes on another server and counts them by kind.
type receiver struct {
	t   *testing.T
	set *kinds.Set

	mu       sync.Mutex // protects the map below
	received map[string]int
}

// NotifyStored implements kinds.Replicas.
func (r *receiver) NotifyStored(change kinds.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received[change.Kind]++
	if err := r.set.Apply(change); err != nil {
		r.t.Errorf("%s: %v", change.Kind, err)
	}
}

// TestCatchUp checks that an object that is no longer stored is removed, whatever changes were
// missed.
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
		t.Fatal("account of the applied change is not in the directory")
	}
	if err := f.Controllers.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Directory.Account("acme", "ghost"); ok {
		t.Error("account that is not stored is in the directory")
	}
	if _, ok := f.Directory.Account("acme", "ci"); !ok {
		t.Error("stored account is not in the directory")
	}
}
