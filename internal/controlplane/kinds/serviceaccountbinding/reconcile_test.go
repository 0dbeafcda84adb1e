package serviceaccountbinding_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/kinds/serviceaccountbinding"
	"freshet/internal/controlplane/reconcile/conditions"
)

// harness is a resource API with the reconciler of bindings running.
type harness struct {
	*testing.T
	client versioned.Interface
}

func start(t *testing.T) harness {
	t.Helper()
	s := kindstest.Start(t, kindstest.Options{})
	client, err := versioned.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kindstest.Run(t, client, serviceaccountbinding.New(kindstest.Plan(), nil)))
	return harness{t, client}
}

func (w harness) bind(name, account, member string) {
	w.Helper()
	_, err := w.client.CloudV1alpha1().ServiceAccountBindings("acme").Create(w.Context(),
		&v1alpha1.ServiceAccountBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.ServiceAccountBindingSpec{
				ServiceAccountName: account,
				PoolMemberRef:      v1alpha1.ObjectReference{Namespace: "default", Name: member},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w harness) account(name string) *v1alpha1.ServiceAccount {
	w.Helper()
	sa, err := w.client.CloudV1alpha1().ServiceAccounts("acme").Create(w.Context(),
		&v1alpha1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return sa
}

// wait watches a binding until its condition Ready is as wanted.
func (w harness) wait(name, status, reason string) *v1alpha1.ServiceAccountBinding {
	w.Helper()
	return kindstest.AwaitReady(w, w.client.CloudV1alpha1().ServiceAccountBindings("acme").Watch, name,
		status+" "+reason,
		func(b *v1alpha1.ServiceAccountBinding) []v1alpha1.Condition { return b.Status.Conditions })
}

func TestBindingIsReadyWhenBothEndsExist(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bind("early", "robot", "local")
	w.wait("early", "False", "ServiceAccountNotFound")
	account := w.account("robot")
	bound := w.wait("early", "True", conditions.ReasonReady)
	if len(bound.OwnerReferences) != 1 || bound.OwnerReferences[0].UID != account.UID {
		t.Errorf("owners of the binding: got %+v, want the account %s", bound.OwnerReferences, account.UID)
	}
	w.bind("astray", "robot", "nowhere")
	w.wait("astray", "False", "PoolMemberNotFound")
}

func TestBindingIsDeleted(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.account("robot")
	w.bind("b", "robot", "local")
	w.wait("b", "True", conditions.ReasonReady)
	api := w.client.CloudV1alpha1().ServiceAccountBindings("acme")
	watch, err := api.Watch(w.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := api.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for {
		if _, err := api.Get(t.Context(), "b", metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-watch.ResultChan():
		case <-deadline:
			t.Fatal("timed out waiting for the deletion of the binding")
		}
	}
}
