package reconcile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
)

type recordedEvents chan string

func (t recordedEvents) Record(kind string, object metav1.Object, warning bool, reason, message string) {
	t <- fmt.Sprintf("%s/%s %t %s %s", kind, object.GetName(), warning, reason, message)
}

// accounts is the kind of the test's objects.
type accounts struct{}

func (accounts) Conditions(obj any) []v1alpha1.Condition {
	if account, ok := obj.(*v1alpha1.ServiceAccount); ok {
		return account.Status.Conditions
	}
	return nil
}

func TestRecordEventsRecordsEachStepOnce(t *testing.T) {
	t.Parallel()
	account := func(version string, conditions ...v1alpha1.Condition) *v1alpha1.ServiceAccount {
		return &v1alpha1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "acme", Name: "robot", ResourceVersion: version,
				Finalizers: []string{"f"},
			},
			Status: v1alpha1.ServiceAccountStatus{Conditions: conditions},
		}
	}
	ready := v1alpha1.Condition{
		Type: "Ready", Status: "True", Reason: "Provisioned",
		Message: "the credentials can be used",
	}
	source := fcache.NewFakeControllerSource()
	old := account("1", ready)
	old.Name = "old"
	source.Add(old)
	informer := cache.NewSharedIndexInformer(source, &v1alpha1.ServiceAccount{}, 0, cache.Indexers{})
	steps := make(recordedEvents, 16)
	if err := reconcile.RecordEvents(informer, "ServiceAccount", accounts{}, steps); err != nil {
		t.Fatal(err)
	}
	go informer.Run(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("informer did not sync")
	}
	lacking := v1alpha1.Condition{Type: "Ready", Status: "False", Reason: "NoSignIn", Message: "sign-in is disabled"}
	source.Add(account("2", lacking)) // not recorded: the create response contains it
	part := v1alpha1.Condition{Type: "PartReady", Status: "True", Reason: "Created"}
	source.Modify(account("3", part, ready)) // the condition of the component is implied by Ready
	source.Modify(account("4", part, ready)) // no condition has changed
	failed := v1alpha1.Condition{
		Type: "Other", Status: "False", Reason: "ProvisioningFailed",
		Message: "the disk is full",
	}
	source.Modify(account("5", part, ready, failed))
	leaving := account("6", part, ready, failed)
	leaving.DeletionTimestamp = &metav1.Time{}
	source.Modify(leaving)
	want := []string{
		"ServiceAccount/robot false Provisioned the credentials can be used",
		"ServiceAccount/robot true ProvisioningFailed Other: the disk is full",
		"ServiceAccount/robot false Deleting deletion was requested; waiting for f",
	}
	var got []string
	for range want {
		select {
		case step := <-steps:
			got = append(got, step)
		case <-time.After(20 * time.Second):
			t.Fatalf("recorded: got %q, want %q", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded: got %q, want %q", got, want)
	}
}
