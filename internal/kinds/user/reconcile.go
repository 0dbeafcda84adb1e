package user

import (
	"context"
	"slices"
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

// Controller says what users can do: nothing, as long as people cannot sign in.
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
		if list, news := conditions.Deleting(user.Status.Conditions, conditions.MessageDeleting, user.Generation); news {
			user.Status.Conditions = list
			_, err := api.UpdateStatus(ctx, user, metav1.UpdateOptions{})
			return 0, err // the change brings the user back here
		}
		if !finalizers.Has(user, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, user, Finalizer, api.Patch)
	}
	// What is written says this already; it is for invitations that expire, and for
	// users of earlier versions.
	list, again := describe(user, time.Now())
	if apiequality.Semantic.DeepEqual(user.Status.Conditions, list) {
		return again, nil
	}
	user.Status.Conditions = list
	_, err := api.UpdateStatus(ctx, user, metav1.UpdateOptions{})
	return again, err
}

// conditionActive is True for people who can sign in.
const conditionActive = "Active"

// describe writes what a user can do into conditions like theirs. again is when
// that may change by itself.
func describe(user *object, now time.Time) (list []v1alpha1.Condition, again time.Duration) {
	reason, message, again := whyNot(user, now)
	list = conditions.Set(slices.Clone(user.Status.Conditions), conditions.False(conditionActive, reason, message, user.Generation))
	return conditions.Set(list, conditions.False(v1alpha1.ConditionReady, reason, message, user.Generation)), again
}

// whyNot says why a person cannot use the service: they did not accept their
// invitation, or else that there is no sign-in for people yet.
func whyNot(user *object, now time.Time) (reason, message string, again time.Duration) {
	invitation := user.Spec.Invitation
	switch {
	case invitation == nil || strings.EqualFold(invitation.Decision, InvitationAccepted):
		return "NoSignIn", "this server has no sign-in for people: use service accounts; role bindings for the user are kept", 0
	case strings.EqualFold(invitation.Decision, InvitationDeclined):
		return "InvitationDeclined", "the invitation was declined", 0
	case !invitation.Expiration.After(now):
		return "InvitationExpired", "the invitation expired", 0
	}
	return "InvitationPending", "the invitation waits for an answer", invitation.Expiration.Sub(now)
}
