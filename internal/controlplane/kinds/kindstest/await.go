package kindstest

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"freshet/api/v1alpha1"
	"freshet/internal/base/retry"
	"freshet/internal/controlplane/reconcile/conditions"
)

// Eventually waits until ok returns true, and fails the test if that takes too long.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for !ok() {
		if retry.Sleep(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("timed out waiting: %s", what)
		}
	}
}

// AwaitReady watches an object with its typed client until the status and reason of its condition
// Ready are as wanted, for example "False NotInvited".
func AwaitReady[T metav1.Object](
	t testing.TB, follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
	name, want string, of func(T) []v1alpha1.Condition,
) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watcher, err := follow(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	var result T
	last := "nothing"
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(T)
		if !ok {
			continue
		}
		ready, _ := conditions.Find(of(object), v1alpha1.ConditionReady)
		if last = string(ready.Status) + " " + ready.Reason; last == want {
			result = object
			break
		}
	}
	if last != want {
		t.Fatalf("%s: got Ready %s, want %s", name, last, want)
	}
	return result
}
