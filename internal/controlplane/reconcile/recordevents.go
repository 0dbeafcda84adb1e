package reconcile

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"freshet/api/v1alpha1"
)

// Recorder stores the steps of controllers for users to read. Record does not block and may drop
// excess events.
type Recorder interface {
	Record(kind string, object metav1.Object, warning bool, reason, message string)
}

// Described is a kind whose objects have conditions; store.Definition implements it.
type Described interface {
	Conditions(obj any) []v1alpha1.Condition
}

// RecordEvents records every step of the objects of an informer: a condition that changes, a deletion
// that begins. Controllers report all their steps in conditions, so they do not have to record them
// as well. Objects that existed before the informer started are not recorded.
func RecordEvents(informer cache.SharedIndexInformer, name string, kind Described, recorder Recorder) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				recordEvents(name, kind, nil, obj, recorder)
			}
		},
		UpdateFunc: func(old, obj any) { recordEvents(name, kind, old, obj, recorder) },
	})
	return err
}

func recordEvents(name string, kind Described, old, obj any, recorder Recorder) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	changed := changedConditions(kind.Conditions(old), kind.Conditions(obj))
	for _, now := range changed {
		if !worthRecording(now, old == nil) || impliedBy(changed, now) {
			continue
		}
		message := now.Message
		if message == "" {
			message = fmt.Sprintf("%s is %s", now.Type, now.Status)
		} else if now.Type != v1alpha1.ConditionReady {
			message = now.Type + ": " + message
		}
		reason := now.Reason
		if reason == "" {
			reason = now.Type
		}
		recorder.Record(name, object, isWarning(now), reason, message)
	}
	if previous, ok := old.(metav1.Object); ok && previous.GetDeletionTimestamp() == nil &&
		object.GetDeletionTimestamp() != nil {
		message := "deletion was requested"
		if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
			message += "; waiting for " + strings.Join(finalizers, ", ")
		}
		recorder.Record(name, object, false, "Deleting", message)
	}
}

// changedConditions returns the conditions that differ from those before.
func changedConditions(before, now []v1alpha1.Condition) []v1alpha1.Condition {
	var changed []v1alpha1.Condition
	for _, c := range now {
		if !slices.ContainsFunc(before, func(b v1alpha1.Condition) bool {
			return b.Type == c.Type && b.Status == c.Status && b.Reason == c.Reason && b.Message == c.Message
		}) {
			changed = append(changed, c)
		}
	}
	return changed
}

// impliedBy reports whether the same step made the object ready, which implies that every component
// is ready.
func impliedBy(changed []v1alpha1.Condition, c v1alpha1.Condition) bool {
	return c.Type != v1alpha1.ConditionReady && c.Status == v1alpha1.ConditionTrue &&
		slices.ContainsFunc(changed, func(n v1alpha1.Condition) bool {
			return n.Type == v1alpha1.ConditionReady && n.Status == v1alpha1.ConditionTrue
		})
}

// worthRecording filters out conditions that need no event: that a key is not expired or revoked,
// unknown states, and conditions that are False from the creation on, because the create response
// contained them and no controller did anything.
func worthRecording(c v1alpha1.Condition, created bool) bool {
	if created && c.Status == v1alpha1.ConditionFalse && !isWarning(c) {
		return false
	}
	if c.Type == v1alpha1.ConditionExpired || c.Type == v1alpha1.ConditionRevoked {
		return c.Status == v1alpha1.ConditionTrue
	}
	return c.Status != v1alpha1.ConditionUnknown
}

// warningSuffixes lists the suffixes of reasons that require a user to act.
var warningSuffixes = []string{
	"Failed", "NotFound", "Invalid", "Error", "Declined", "Expired", "Unavailable",
	"Unsupported",
}

func isWarning(c v1alpha1.Condition) bool {
	return c.Status == v1alpha1.ConditionFalse &&
		(c.Type == "AsRequested" ||
			slices.ContainsFunc(warningSuffixes, func(end string) bool { return strings.HasSuffix(c.Reason, end) }))
}
