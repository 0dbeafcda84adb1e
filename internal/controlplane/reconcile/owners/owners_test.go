package owners_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/controlplane/reconcile/owners"
)

func TestAddLinksOnce(t *testing.T) {
	t.Parallel()
	owner := &metav1.ObjectMeta{Name: "robot", UID: "u1"}
	shared := []metav1.OwnerReference{{Kind: "Other", Name: "x", UID: "u0"}}
	obj := &metav1.ObjectMeta{OwnerReferences: shared}
	if !owners.Add(obj, owner, "ServiceAccount") {
		t.Error("first Add: got false, want true")
	}
	if owners.Add(obj, owner, "ServiceAccount") {
		t.Error("second Add: got true, want false")
	}
	if len(obj.OwnerReferences) != 2 {
		t.Fatalf("got owners %v, want two", obj.OwnerReferences)
	}
	ref := obj.OwnerReferences[1]
	if ref.APIVersion != "cloud.vendor.io/v1alpha1" || ref.Kind != "ServiceAccount" || ref.Name != "robot" ||
		ref.UID != "u1" ||
		ref.Controller == nil || !*ref.Controller || ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
		t.Errorf("reference: got %+v, want a blocking controller reference to ServiceAccount robot u1", ref)
	}
	if got := owners.UID(obj, "ServiceAccount", "robot"); got != "u1" {
		t.Errorf("UID of the owner: got %q, want u1", got)
	}
	if got := owners.UID(obj, "ServiceAccount", "other"); got != "" {
		t.Errorf("UID of a missing owner: got %q, want none", got)
	}
}
