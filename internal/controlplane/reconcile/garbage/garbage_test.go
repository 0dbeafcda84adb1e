package garbage_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/reconcile/garbage"
	"freshet/test/tally"
)

// harness is a resource API with a running collector. Role bindings stand for any kind here: they
// have no controller and no finalizer of their own.
type harness struct {
	*testing.T
	bindings typed.RoleBindingInterface
}

func start(t *testing.T) harness {
	t.Helper()
	s := kindstest.Start(t, kindstest.Options{})
	client, err := versioned.NewForConfig(s.Client())
	if err != nil {
		t.Fatal(err)
	}
	collector, err := garbage.New(s.Loopback(), []garbage.Kind{
		{Resource: v1alpha1.SchemeGroupVersion.WithResource("rolebindings"), Kind: "RoleBinding"},
		{Resource: v1alpha1.SchemeGroupVersion.WithResource("users"), Kind: "User"},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := collector.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("collector: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return harness{t, client.CloudV1alpha1().RoleBindings("acme")}
}

func (w harness) create(name string, owners ...metav1.OwnerReference) *v1alpha1.RoleBinding {
	w.Helper()
	obj, err := w.bindings.Create(w.Context(), &v1alpha1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
		Spec:       v1alpha1.RoleBindingSpec{RoleRef: v1alpha1.RoleRef{Kind: "ClusterRole", Name: "org-admin"}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return obj
}

func ownedBy(owner *v1alpha1.RoleBinding) metav1.OwnerReference {
	block := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "RoleBinding",
		Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block,
	}
}

func (w harness) delete(name string, policy metav1.DeletionPropagation) {
	w.Helper()
	if err := w.bindings.Delete(w.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		w.Fatal(err)
	}
}

func (w harness) exists(name string) bool {
	w.Helper()
	_, err := w.bindings.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func (w harness) expectDeleted(names ...string) {
	w.Helper()
	for _, name := range names {
		kindstest.Eventually(w, name+" is deleted", func() bool { return !w.exists(name) })
	}
}

func TestBackgroundDeletionDeletesDependents(t *testing.T) {
	t.Parallel()
	w := start(t)
	owner := w.create("owner")
	child := w.create("child", ownedBy(owner))
	w.create("grandchild", ownedBy(child))
	w.create("stranger")
	w.delete("owner", metav1.DeletePropagationBackground)
	w.expectDeleted("owner", "child", "grandchild")
	if !w.exists("stranger") {
		t.Error("object without that owner was deleted")
	}
}

func TestForegroundDeletionWaitsForDependents(t *testing.T) {
	t.Parallel()
	w := start(t)
	owner := w.create("owner")
	child := w.create("child", ownedBy(owner))
	w.create("grandchild", ownedBy(child))
	// A foreign finalizer on the child must hold the owner as well.
	w.patch("child", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	w.delete("owner", metav1.DeletePropagationForeground)
	kindstest.Eventually(w, "the child is being deleted", func() bool {
		obj, err := w.bindings.Get(t.Context(), "child", metav1.GetOptions{})
		return err == nil && obj.DeletionTimestamp != nil
	})
	w.expectDeleted("grandchild")
	if !w.exists("owner") {
		t.Error("owner was deleted before its dependent")
	}
	w.patch("child", `{"metadata":{"finalizers":null}}`)
	w.expectDeleted("child", "owner")
}

func TestOrphanedDependentsStay(t *testing.T) {
	t.Parallel()
	w := start(t)
	owner := w.create("owner")
	w.create("child", ownedBy(owner))
	w.delete("owner", metav1.DeletePropagationOrphan)
	w.expectDeleted("owner")
	obj, err := w.bindings.Get(t.Context(), "child", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the orphan: %v", err)
	}
	if len(obj.OwnerReferences) != 0 {
		t.Errorf("orphan still has owners: %v", obj.OwnerReferences)
	}
}

func TestObjectWithAMissingOwnerIsDeleted(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create("late", metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "RoleBinding", Name: "never", UID: types.UID("dead"),
	})
	w.expectDeleted("late")
}

func TestOneLivingOwnerIsEnough(t *testing.T) {
	t.Parallel()
	w := start(t)
	first, second := w.create("first"), w.create("second")
	w.create("child", ownedBy(first), ownedBy(second))
	w.delete("first", metav1.DeletePropagationBackground)
	kindstest.Eventually(w, "the reference to the deleted owner is removed", func() bool {
		obj, err := w.bindings.Get(t.Context(), "child", metav1.GetOptions{})
		return err == nil && len(obj.OwnerReferences) == 1 && obj.OwnerReferences[0].Name == "second"
	})
}

func TestAnOwnerDoesNotWaitForADependentThatHasAnother(t *testing.T) {
	t.Parallel()
	w := start(t)
	first, second := w.create("first"), w.create("second")
	w.create("child", ownedBy(first), ownedBy(second))
	w.delete("first", metav1.DeletePropagationForeground)
	w.expectDeleted("first")
	obj, err := w.bindings.Get(t.Context(), "child", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the dependent of an existing owner: %v", err)
	}
	if len(obj.OwnerReferences) != 1 || obj.OwnerReferences[0].Name != "second" {
		t.Errorf("owners of the dependent: got %v, want the existing one", obj.OwnerReferences)
	}
}

func TestOwnersOfUnknownKindsAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create("foreign", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "y"})
	w.create("marker", metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "RoleBinding", Name: "never", UID: types.UID("dead"),
	})
	w.expectDeleted("marker") // the collector has processed both by now
	if !w.exists("foreign") {
		t.Error("object with an owner of an unknown kind was deleted")
	}
}

func TestObjectsThatOwnEachOtherCanBeDeleted(t *testing.T) {
	t.Parallel()
	w := start(t)
	a := w.create("a")
	b := w.create("b", ownedBy(a))
	w.patch("a", `{"metadata":{"ownerReferences":[{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"RoleBinding",`+
		`"name":"b","uid":"`+string(b.UID)+`","blockOwnerDeletion":true}]}}`)
	w.delete("a", metav1.DeletePropagationForeground)
	w.expectDeleted("a", "b")
}

func TestGracePeriodEndsOnTime(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create("slow")
	grace := int64(2)
	before := time.Now()
	if err := w.bindings.Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	obj, err := w.bindings.Get(t.Context(), "slow", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the object in its grace period: %v", err)
	}
	if obj.DeletionTimestamp == nil || !obj.DeletionTimestamp.After(before) ||
		*obj.DeletionGracePeriodSeconds != grace {
		t.Errorf("got deletionTimestamp %v and grace period %v, want a later time and 2", obj.DeletionTimestamp,
			obj.DeletionGracePeriodSeconds)
	}
	w.expectDeleted("slow")
	if took := time.Since(before); took < 2*time.Second {
		t.Errorf("deleted after %v, want at least %ds", took, grace)
	}
}

func (w harness) patch(name, body string) {
	w.Helper()
	if _, err := w.bindings.Patch(w.Context(), name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// TestAttackBlockingByUID creates dependents that have the UID of an owner, but the name of an API that this server
// does not serve, for which no permission is checked. They must not block the owner's deletion.
func TestAttackBlockingByUID(t *testing.T) {
	t.Parallel()
	w := start(t)
	owner := w.create("owner")
	for name, version := range map[string]string{"deployment": "apps/v1", "same-kind": "other.example/v1"} {
		ref := ownedBy(owner)
		ref.APIVersion = version
		if name == "deployment" {
			ref.Kind = "Deployment"
		}
		w.create(name, ref)
	}
	w.delete("owner", metav1.DeletePropagationForeground)
	w.expectDeleted("owner")
	for _, name := range []string{"deployment", "same-kind"} {
		if !w.exists(name) {
			t.Errorf("%s, whose owner is of another API, was deleted", name)
		}
	}
	tally.Attack(t, "block the deletion of an object by its UID", 2, 0)
}
