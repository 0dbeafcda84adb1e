package role

import (
	"context"
	"time"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
)

// Controller writes the condition Ready of roles.
type Controller struct {
	*reconcile.Reconciler[*object]
	client versioned.Interface
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	c := &Controller{client: env.Client}
	informer := env.Informers.Cloud().V1alpha1().Roles().Informer()
	if err := reconcile.Follow(informer, k.Put, k.Remove); err != nil {
		return nil, err
	}
	var err error
	c.Reconciler, err = reconcile.New("role", informer, env.Log, c)
	return c, err
}

// Reconcile implements reconcile.Handler.
func (c *Controller) Reconcile(ctx context.Context, o *object) (time.Duration, error) {
	status := *o.Status.DeepCopy()
	if reconcile.Deleting(o) {
		status.Conditions, _ = conditions.Deleting(status.Conditions, conditions.MessageDeleting, o.Generation)
	} else {
		status.Conditions = conditions.Set(status.Conditions,
			conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", o.Generation))
	}
	return 0, reconcile.WriteStatus(ctx, c.client.CloudV1alpha1().Roles(o.Namespace), o, &o.Status, status)
}
