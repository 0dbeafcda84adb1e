package apikey

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
)

// Reasons of a key's conditions.
const (
	reasonIssued          = "Issued"
	reasonNoAccount       = "ServiceAccountNotFound"
	reasonNotExpired      = "NotExpired"
	reasonExpired         = "Expired"
	reasonNotRevoked      = "NotRevoked"
	reasonRevoked         = "Revoked"
	reasonFailed          = "IssuingFailed"
	reasonNoInstance      = "InstanceNotFound"
	reasonNotAccepted     = "APIKeysNotAccepted"
	reasonNoEncryptionKey = "NoEncryptionKey"
	reasonWithdrawn       = "SigningKeyWithdrawn"
)

// ownConditionTypes lists our conditions, in the order on which clients rely (docs/spec/resources.md#r5).
var ownConditionTypes = []string{v1alpha1.ConditionIssued, v1alpha1.ConditionExpired, v1alpha1.ConditionRevoked}

func isOwn(c metav1.Condition) bool { return slices.Contains(ownConditionTypes, c.Type) }

func ownConditions(list []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c metav1.Condition) bool { return !isOwn(c) })
}

func foreignConditions(list []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(list), isOwn)
}

// describe writes all three conditions; failed is set if issuing the token has just failed.
func (k *Kind) describe(key *object, failed bool) {
	desired := []metav1.Condition{
		condition(v1alpha1.ConditionIssued, metav1.ConditionTrue, reasonIssued, "the key has been issued"),
		condition(v1alpha1.ConditionExpired, metav1.ConditionFalse, reasonNotExpired, "the key has not expired"),
		condition(v1alpha1.ConditionRevoked, metav1.ConditionFalse, reasonNotRevoked, "the key has not been revoked"),
	}
	if failed {
		desired[0] = condition(v1alpha1.ConditionIssued, metav1.ConditionFalse, reasonFailed,
			"the token could not be issued; the server retries")
	} else if o := k.obstacle(key); o != nil {
		desired[0] = condition(v1alpha1.ConditionIssued, metav1.ConditionFalse, o.reason, o.message)
	}
	if expired(key) {
		desired[1] = condition(v1alpha1.ConditionExpired, metav1.ConditionTrue, reasonExpired, "the key has expired")
	}
	if key.Status.RevokedAt != nil {
		desired[2] = condition(v1alpha1.ConditionRevoked, metav1.ConditionTrue, reasonRevoked,
			"the key has been revoked")
	}
	for i := range desired {
		desired[i].ObservedGeneration = key.Generation
		desired[i].LastTransitionTime = conditions.Now()
		for _, old := range key.Status.Conditions {
			if old.Type == desired[i].Type && old.Status == desired[i].Status && !old.LastTransitionTime.IsZero() {
				desired[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	key.Status.Conditions = append(desired, foreignConditions(key.Status.Conditions)...)
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// stale reports whether the status does not match the key.
func (k *Kind) stale(key *object) bool {
	updated := key.DeepCopy()
	if updated.Spec.Revoke {
		revoke(updated)
	}
	k.describe(updated, k.obstacle(key) == nil && key.Status.IssuedAt == nil)
	return !apiequality.Semantic.DeepEqual(updated.Status, key.Status)
}

// expired reports whether a key has expired.
func expired(key *object) bool {
	end := key.Spec.ExpirationTime
	return end != nil && !end.After(time.Now())
}

func isTrue(key *v1alpha1.APIKey, kind string) bool {
	for _, c := range key.Status.Conditions {
		if c.Type == kind {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// State summarizes a key's three conditions.
func State(o *object) (ready, reason string) {
	if reconcile.Deleting(o) {
		return "False", conditions.ReasonDeleting
	}
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
