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
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/finalizers"
)

// Controller writes to the status whether users can sign in.
type Controller struct {
	*reconcile.Reconciler[*object]
	kind   *Kind
	client versioned.Interface
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	c := &Controller{kind: k, client: env.Client}
	users := env.Informers.Cloud().V1alpha1().Users().Informer()
	if err := reconcile.Follow(users, k.Put, k.Remove); err != nil {
		return nil, err
	}
	var err error
	if c.Reconciler, err = reconcile.New("user", users, env.Log, c); err != nil {
		return nil, err
	}
	k.SignIns.OnChange(c.EnqueueName)
	return c, nil
}

// Reconcile implements reconcile.Handler.
func (c *Controller) Reconcile(ctx context.Context, user *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().Users(user.Namespace)
	if reconcile.Deleting(user) {
		if list, changed := conditions.Deleting(user.Status.Conditions, conditions.MessageDeleting,
			user.Generation); changed {
			user.Status.Conditions = list
			_, err := api.UpdateStatus(ctx, user, metav1.UpdateOptions{})
			return 0, err // the status change queues the user again
		}
		if !finalizers.Has(user, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, user, Finalizer, api.Patch)
	}
	// Later writes of the spec set these conditions already (Describe). The reconciler sets them for a
	// new user, and updates them when a password is set or an invitation expires.
	list, again := c.kind.describe(user, time.Now())
	if apiequality.Semantic.DeepEqual(user.Status.Conditions, list) {
		return again, nil
	}
	user.Status.Conditions = list
	_, err := api.UpdateStatus(ctx, user, metav1.UpdateOptions{})
	return again, err
}

// conditionActive is True for users who can sign in.
const conditionActive = "Active"

// describe returns the conditions of a user. again is the time after which they may change without
// a write.
func (k *Kind) describe(user *object, now time.Time) (list []v1alpha1.Condition, again time.Duration) {
	status, reason, message, again := k.canSignIn(user, now)
	list = conditions.Set(slices.Clone(user.Status.Conditions),
		status(conditionActive, reason, message, user.Generation))
	return conditions.Set(list, status(v1alpha1.ConditionReady, reason, message, user.Generation)), again
}

type newCondition func(kind, reason, message string, generation int64) v1alpha1.Condition

// canSignIn returns whether a user can sign in, and what is missing if not. A user who has set a
// passkey or a password has accepted, whatever spec.invitation contains; a user who has declined
// cannot sign in.
func (k *Kind) canSignIn(user *object,
	now time.Time,
) (status newCondition, reason, message string, again time.Duration) {
	state := k.SignIns.StateOf(string(user.UID), user.Spec.Email)
	invitation := user.Spec.Invitation
	switch {
	case declined(user):
		return conditions.False, "InvitationDeclined", "the invitation was declined", 0
	case state.Passkeys > 0:
		return conditions.True, "CanSignIn", "the person can sign in with a passkey", 0
	case state.Password:
		return conditions.True, "CanSignIn", "the person can sign in with a password", 0
	case invitation != nil && !strings.EqualFold(invitation.Decision, InvitationAccepted):
		if !invitation.Expiration.After(now) {
			return conditions.False, "InvitationExpired", "the invitation has expired; invite the person again", 0
		}
		return conditions.False, "InvitationPending", "the invitation has not been accepted yet",
			invitation.Expiration.Sub(now)
	case state.Provider:
		return conditions.True, "CanSignIn", "the person can sign in with the OpenID provider", 0
	case state.Invited.After(now):
		return conditions.False, "Invited", "the person has a link to set a passkey or a password, valid until " +
			state.Invited.UTC().Format(time.RFC3339), state.Invited.Sub(now)
	case !state.Invited.IsZero():
		return conditions.False, "InvitationExpired",
			"the link to set a passkey or a password was not used in time; invite the person again", 0
	}
	return conditions.False, "NotInvited", "the person has no way to sign in; create a link for them with " +
		"POST …/users/" + user.Name + "/invite", 0
}

// declined reports whether the person has declined the invitation.
func declined(user *object) bool {
	invitation := user.Spec.Invitation
	return invitation != nil && strings.EqualFold(invitation.Decision, InvitationDeclined)
}
