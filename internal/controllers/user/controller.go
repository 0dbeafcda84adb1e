// Package user looks after users: a user is ready when they belong to the
// organization, which an invitation that was not accepted in time prevents.
package user

import (
	"context"
	"log/slog"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/controllers/finalizers"
	"freshet/internal/controllers/loop"
	kind "freshet/internal/resources/registry/user"
)

// Controller looks after users.
type Controller struct {
	*loop.Reconciler[*v1alpha1.User]
	client versioned.Interface
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, log *slog.Logger) (*Controller, error) {
	c := &Controller{client: client}
	var err error
	c.Reconciler, err = loop.New("user", informers.Cloud().V1alpha1().Users().Informer(), log, c.reconcile)
	return c, err
}

func (c *Controller) reconcile(ctx context.Context, user *v1alpha1.User) (time.Duration, error) {
	api := c.client.CloudV1alpha1().Users(user.Namespace)
	if loop.Deleting(user) {
		if !finalizers.Has(user, kind.Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, user, kind.Finalizer, api.Patch)
	}
	status := *user.Status.DeepCopy()
	ready, again := judge(user, time.Now())
	status.Conditions = conditions.Set(status.Conditions, ready)
	if apiequality.Semantic.DeepEqual(user.Status, status) {
		return again, nil
	}
	user.Status = status
	_, err := api.UpdateStatus(ctx, user, metav1.UpdateOptions{})
	return again, err
}

// judge says whether a user belongs to the organization, and when that may
// change by itself.
func judge(user *v1alpha1.User, now time.Time) (ready v1alpha1.Condition, again time.Duration) {
	invitation := user.Spec.Invitation
	switch {
	case invitation == nil || strings.EqualFold(invitation.Decision, kind.InvitationAccepted):
		return conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", user.Generation), 0
	case strings.EqualFold(invitation.Decision, kind.InvitationDeclined):
		return conditions.False(v1alpha1.ConditionReady, "InvitationDeclined", "the invitation was declined", user.Generation), 0
	case !invitation.Expiration.After(now):
		return conditions.False(v1alpha1.ConditionReady, "InvitationExpired", "the invitation expired", user.Generation), 0
	}
	return conditions.False(v1alpha1.ConditionReady, "InvitationPending", "the invitation waits for an answer", user.Generation),
		invitation.Expiration.Sub(now)
}
