package kinds_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

func instance(name string) *v1alpha1.MessagingInstance {
	return &v1alpha1.MessagingInstance{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func cluster(name, instance string) *v1alpha1.MessagingCluster {
	return &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MessagingClusterSpec{InstanceName: instance, Location: "local"},
	}
}

// TestForegroundDeletionEnds checks that a foreground deletion of an instance ends and leaves no
// owned cluster, whether the cluster is created before its instance, with it, or while the deletion
// is being accepted.
func TestForegroundDeletionEnds(t *testing.T) {
	t.Parallel()
	s := kindstest.StartSystem(t)
	api := s.Admin.CloudV1alpha1()
	foreground := metav1.DeletePropagationForeground
	const trials = 40
	var running sync.WaitGroup
	for trial := range trials {
		running.Go(func() {
			name := fmt.Sprintf("i%d", trial)
			create := func() {
				_, err := api.MessagingClusters("acme").Create(t.Context(), cluster(name, name), metav1.CreateOptions{})
				if err != nil && !apierrors.IsInvalid(err) { // the instance is being deleted
					t.Errorf("creating cluster %s: %v", name, err)
				}
			}
			order := rand.IntN(3)
			if order == 0 {
				create() // before its instance
			}
			if _, err := api.MessagingInstances("acme").Create(t.Context(), instance(name),
				metav1.CreateOptions{}); err != nil {
				t.Errorf("creating instance %s: %v", name, err)
				return
			}
			var racing sync.WaitGroup
			switch order {
			case 1:
				create()
			case 2:
				racing.Go(create)
			}
			if err := api.MessagingInstances("acme").Delete(t.Context(), name,
				metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Errorf("deleting instance %s: %v", name, err)
			}
			racing.Wait()
		})
	}
	running.Wait()
	s.Eventually("every instance is deleted", func() bool {
		list, err := api.MessagingInstances("acme").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	// A cluster whose creation began before the deletion and ended after it has no instance and no
	// owner. All others were deleted before their instance.
	s.Eventually("no cluster with an owner is left", func() bool {
		list, err := api.MessagingClusters("acme").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, item := range list.Items {
			if len(item.OwnerReferences) > 0 {
				return false
			}
		}
		return true
	})
}

// TestOwnersAreInTheCreateItself checks that the create response already contains the owner, so
// that no deletion can come between the creation and the owner reference.
func TestOwnersAreInTheCreateItself(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{}) // no reconciler runs
	client := newClient(t, s)
	api := client.CloudV1alpha1()
	if _, err := api.MessagingInstances("acme").Create(t.Context(), instance("prod"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ServiceAccounts("acme").Create(t.Context(), account("ci"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	created, err := api.MessagingClusters("acme").Create(t.Context(), cluster("east", "prod"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := api.APIKeys("acme").Create(t.Context(), &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Name: "k"}, Spec: v1alpha1.APIKeySpec{ServiceAccountName: "ci"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := api.ServiceAccountBindings("acme").Create(t.Context(), &v1alpha1.ServiceAccountBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: v1alpha1.ServiceAccountBindingSpec{
			ServiceAccountName: "ci", PoolMemberRef: v1alpha1.ObjectReference{Namespace: "default", Name: "local"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]struct {
		refs []metav1.OwnerReference
		want string
	}{
		"the cluster": {created.OwnerReferences, "prod"}, "the key": {key.OwnerReferences, "ci"},
		"the binding": {binding.OwnerReferences, "ci"},
	} {
		if len(got.refs) != 1 || got.refs[0].Name != got.want || got.refs[0].BlockOwnerDeletion == nil ||
			!*got.refs[0].BlockOwnerDeletion {
			t.Errorf("%s: got owners %+v, want %s, blocking", what, got.refs, got.want)
		}
	}
}
