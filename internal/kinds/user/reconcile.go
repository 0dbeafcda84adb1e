package user

import (
	"context"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/reconcile"
	"freshet/internal/reconcile/conditions"
	"freshet/internal/reconcile/finalizers"
)

// Controller says whether users belong to their organization.
type Controller struct {
	*reconcile.Reconciler[*object]
	client versioned.Interface
}

// Controller makes the kind's reconciler.
func (*Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	c := &Controller{client: env.Client}
	var err error
	c.Reconciler, err = reconcile.New("user", env.Informers.Cloud().V1alpha1().Users().Informer(), env.Log, c.reconcile)
	return c, err
}

func (c *Controller) reconcile(ctx context.Context, user *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().Users(user.Namespace)
	if reconcile.Deleting(user) {
		if !finalizers.Has(user, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, user, Finalizer, api.Patch)
	}
	status := *user.Status.DeepCopy()
	ready, again := describe(user, time.Now())
	status.Conditions = conditions.Set(status.Conditions, ready)
	if apiequality.Semantic.DeepEqual(user.Status, status) {
		return again, nil
	}
	user.Status = status
	_, err := api.UpdateStatus(ctx, user, metav1.UpdateOptions{})
	return again, err
}

// describe says whether a user belongs to the organization, and when that may
// change by itself.
func describe(user *object, now time.Time) (ready v1alpha1.Condition, again time.Duration) {
	invitation := user.Spec.Invitation
	switch {
	case invitation == nil || strings.EqualFold(invitation.Decision, InvitationAccepted):
		return conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", user.Generation), 0
	case strings.EqualFold(invitation.Decision, InvitationDeclined):
		return conditions.False(v1alpha1.ConditionReady, "InvitationDeclined", "the invitation was declined", user.Generation), 0
	case !invitation.Expiration.After(now):
		return conditions.False(v1alpha1.ConditionReady, "InvitationExpired", "the invitation expired", user.Generation), 0
	}
	return conditions.False(v1alpha1.ConditionReady, "InvitationPending", "the invitation waits for an answer", user.Generation),
		invitation.Expiration.Sub(now)
}
