// Package conditions builds lists of status conditions, in a fixed order and with a transition time
// that changes only when the status changes.
package conditions

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

// Reasons of the condition Ready.
const (
	// ReasonReady: every other condition is True.
	ReasonReady = "AllConditionStatusTrue"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
)

// Set replaces the condition of the same type, or appends it.
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

// True returns a condition with status True.
func True(kind, reason, message string, generation int64) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: kind, Status: v1alpha1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
	}
}

// False returns a condition with status False.
func False(kind, reason, message string, generation int64) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: kind, Status: v1alpha1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: generation,
	}
}

// Deleting sets Ready to False for an object that is being deleted and held by finalizers. It
// reports whether that changed the list. Before the write that sets the deletion timestamp, pass
// the generation that the object will have.
func Deleting(list []v1alpha1.Condition, message string, generation int64) ([]v1alpha1.Condition, bool) {
	if ready, ok := Find(list, v1alpha1.ConditionReady); ok && ready.Status == v1alpha1.ConditionFalse &&
		ready.Reason == ReasonDeleting {
		return list, false
	}
	return Set(slices.Clone(list), False(v1alpha1.ConditionReady, ReasonDeleting, message, generation)), true
}

// MessageDeleting is the message of kinds that report nothing else about their deletion.
const MessageDeleting = "object is being deleted and waits for its finalizers"

// Find returns the condition of a type.
func Find(list []v1alpha1.Condition, kind string) (v1alpha1.Condition, bool) {
	for _, c := range list {
		if c.Type == kind {
			return c, true
		}
	}
	return v1alpha1.Condition{}, false
}

// IsReady reports whether Ready is True for a generation.
func IsReady(list []v1alpha1.Condition, generation int64) bool {
	c, ok := Find(list, v1alpha1.ConditionReady)
	return ok && c.Status == v1alpha1.ConditionTrue && c.ObservedGeneration == generation
}

// Now returns the time in the precision that is stored.
func Now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// Replace returns a new list of conditions in the given order. Each keeps its transition time if
// its status has not changed.
func Replace(old []v1alpha1.Condition, desired ...v1alpha1.Condition) []v1alpha1.Condition {
	list := make([]v1alpha1.Condition, 0, len(desired))
	for _, c := range desired {
		before, had := Find(old, c.Type)
		c.LastTransitionTime = before.LastTransitionTime
		if !had || before.Status != c.Status || c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = Now()
		}
		list = append(list, c)
	}
	return list
}

// Published returns the conditions of an object that the service creates: it is ready as soon as it
// exists.
func Published(generation int64) []v1alpha1.Condition {
	return Set(nil, True(v1alpha1.ConditionReady, "Ready", "", generation))
}
