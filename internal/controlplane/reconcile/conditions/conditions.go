// Package conditions writes status conditions: in order, and with a transition
// time that moves only when the status does.
package conditions

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

// Reasons of Ready.
const (
	// ReasonReady says that every other condition is True.
	ReasonReady = "AllConditionStatusTrue"
	// ReasonDeleting says that the object is on its way out.
	ReasonDeleting = "Deleting"
)

// Set puts a condition into the list: in place when its type is there, at the
// end when not.
func Set(list []v1alpha1.Condition, c v1alpha1.Condition) []v1alpha1.Condition {
	for i := range list {
		if list[i].Type != c.Type {
			continue
		}
		c.LastTransitionTime = list[i].LastTransitionTime
		if list[i].Status != c.Status || c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = Now()
		}
		list[i] = c
		return list
	}
	c.LastTransitionTime = Now()
	return append(list, c)
}

// True makes a condition that holds.
func True(kind, reason, message string, generation int64) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: kind, Status: v1alpha1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
	}
}

// False makes a condition that does not hold.
func False(kind, reason, message string, generation int64) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: kind, Status: v1alpha1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: generation,
	}
}

// Deleting makes a condition Ready False for an object that is being deleted and
// held by finalizers, unless it is so already, and says whether that was news. In
// front of the write that marks the object, pass the generation that it will have.
func Deleting(list []v1alpha1.Condition, message string, generation int64) ([]v1alpha1.Condition, bool) {
	if ready, ok := Find(list, v1alpha1.ConditionReady); ok && ready.Status == v1alpha1.ConditionFalse &&
		ready.Reason == ReasonDeleting {
		return list, false
	}
	return Set(slices.Clone(list), False(v1alpha1.ConditionReady, ReasonDeleting, message, generation)), true
}

// MessageDeleting is for kinds that have nothing more to say about their end.
const MessageDeleting = "it is being deleted, and its finalizers hold it"

// Find returns the condition of a type.
func Find(list []v1alpha1.Condition, kind string) (v1alpha1.Condition, bool) {
	for _, c := range list {
		if c.Type == kind {
			return c, true
		}
	}
	return v1alpha1.Condition{}, false
}

// IsReady says whether Ready holds for a generation.
func IsReady(list []v1alpha1.Condition, generation int64) bool {
	c, ok := Find(list, v1alpha1.ConditionReady)
	return ok && c.Status == v1alpha1.ConditionTrue && c.ObservedGeneration == generation
}

// Now is the time in the precision that is stored.
func Now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// Replace writes a whole list of conditions in the order given; each keeps its
// transition time when its status is the one it had.
func Replace(old []v1alpha1.Condition, wanted ...v1alpha1.Condition) []v1alpha1.Condition {
	list := make([]v1alpha1.Condition, 0, len(wanted))
	for _, c := range wanted {
		before, had := Find(old, c.Type)
		c.LastTransitionTime = before.LastTransitionTime
		if !had || before.Status != c.Status || c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = Now()
		}
		list = append(list, c)
	}
	return list
}

// Published are the conditions of what comes with the service: it is ready by
// being there.
func Published(generation int64) []v1alpha1.Condition {
	return Set(nil, True(v1alpha1.ConditionReady, "Ready", "", generation))
}
