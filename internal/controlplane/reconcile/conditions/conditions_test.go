package conditions_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
)

func TestReplaceKeepsOrderAndTimes(t *testing.T) {
	t.Parallel()
	then := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	old := []v1alpha1.Condition{
		{Type: "Ready", Status: v1alpha1.ConditionFalse, LastTransitionTime: then},
		{Type: "A", Status: v1alpha1.ConditionTrue, LastTransitionTime: then},
		{Type: "Old", Status: v1alpha1.ConditionTrue, LastTransitionTime: then},
	}
	got := conditions.Replace(old,
		conditions.True("A", "r", "m", 2), conditions.False("B", "r", "m", 2), conditions.True("Ready", "r", "m", 2))
	if len(got) != 3 || got[0].Type != "A" || got[1].Type != "B" || got[2].Type != "Ready" {
		t.Fatalf("order: got %+v, want A, B, Ready", got)
	}
	if !got[0].LastTransitionTime.Equal(&then) || got[0].ObservedGeneration != 2 {
		t.Errorf("unchanged condition: got %+v, want the old transition time and generation 2", got[0])
	}
	for _, c := range got[1:] {
		if !c.LastTransitionTime.After(then.Time) {
			t.Errorf("new or changed condition: got %+v, want a new transition time", c)
		}
	}
	if !conditions.IsReady(got, 2) || conditions.IsReady(got, 3) {
		t.Error("IsReady: want true for generation 2 and false for 3")
	}
}

func TestSetChangesTheTimeWithTheStatus(t *testing.T) {
	t.Parallel()
	then := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	list := []v1alpha1.Condition{{Type: "A", Status: v1alpha1.ConditionTrue, LastTransitionTime: then}}
	list = conditions.Set(list, conditions.True("A", "other", "words", 7))
	if !list[0].LastTransitionTime.Equal(&then) || list[0].Reason != "other" {
		t.Errorf("same status: got %+v, want the old transition time and the new reason", list[0])
	}
	list = conditions.Set(list, conditions.False("A", "r", "", 8))
	if list[0].LastTransitionTime.Equal(&then) || len(list) != 1 {
		t.Errorf("changed status: got %+v, want a new transition time", list)
	}
	list = conditions.Set(list, conditions.True("B", "r", "", 8))
	if _, ok := conditions.Find(list, "B"); !ok || len(list) != 2 {
		t.Errorf("another condition: got %+v, want it appended", list)
	}
	if _, ok := conditions.Find(list, "C"); ok {
		t.Error("Find(C): got a condition, want none")
	}
}
