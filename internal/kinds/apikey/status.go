package apikey

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/reconcile/conditions"
)

// Reasons of a key's conditions.
const (
	reasonIssued     = "Issued"
	reasonNoAccount  = "ServiceAccountNotFound"
	reasonNotExpired = "NotExpired"
	reasonExpired    = "Expired"
	reasonNotRevoked = "NotRevoked"
	reasonRevoked    = "Revoked"
	reasonFailed     = "IssuingFailed"
)

// describe writes all three conditions, in the order that clients rely on
// (docs/spec/resources.md#r5).
func describe(key *v1alpha1.APIKey, issued bool, reason, message string) {
	status := metav1.ConditionFalse
	if issued {
		status = metav1.ConditionTrue
	}
	set(key, v1alpha1.ConditionIssued, status, reason, message)
	if overdue(key) {
		set(key, v1alpha1.ConditionExpired, metav1.ConditionTrue, reasonExpired, "the key has expired")
	} else {
		set(key, v1alpha1.ConditionExpired, metav1.ConditionFalse, reasonNotExpired, "the key has not expired")
	}
	if key.Status.RevokedAt != nil {
		set(key, v1alpha1.ConditionRevoked, metav1.ConditionTrue, reasonRevoked, "the key has been revoked")
	} else {
		set(key, v1alpha1.ConditionRevoked, metav1.ConditionFalse, reasonNotRevoked, "the key has not been revoked")
	}
}

// overdue says whether a key's time is over.
func overdue(key *object) bool {
	end := key.Spec.ExpirationTime
	return end != nil && !end.After(time.Now())
}

// set writes one of the three conditions, keeping their order.
func set(key *v1alpha1.APIKey, kind string, status metav1.ConditionStatus, reason, message string) {
	c := metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: key.Generation, LastTransitionTime: conditions.Now(),
	}
	key.Status.Conditions = slices.Clone(key.Status.Conditions) // an update shares them with what was stored
	for i, old := range key.Status.Conditions {
		if old.Type == kind {
			if old.Status == status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			key.Status.Conditions[i] = c
			return
		}
	}
	key.Status.Conditions = append(key.Status.Conditions, c)
}

func holds(key *v1alpha1.APIKey, kind string) bool {
	for _, c := range key.Status.Conditions {
		if c.Type == kind {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// State sums up a key's three conditions as one.
func State(o *object) (ready, reason string) {
	ready, reason = "False", "Pending"
	for _, c := range o.Status.Conditions {
		switch {
		case c.Type == v1alpha1.ConditionIssued:
			ready, reason = string(c.Status), c.Reason
		case (c.Type == v1alpha1.ConditionExpired || c.Type == v1alpha1.ConditionRevoked) && c.Status == "True":
			return "False", c.Reason
		}
	}
	return ready, reason
}
