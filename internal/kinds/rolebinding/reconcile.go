package rolebinding

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/reconcile"
	"freshet/internal/reconcile/conditions"
)

// Controller says in status whether a binding is in force.
type Controller struct {
	*reconcile.Reconciler[*object]
	client versioned.Interface
}

// Controller makes the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	c := &Controller{client: env.Client}
	informer := env.Informers.Cloud().V1alpha1().RoleBindings().Informer()
	if err := reconcile.Follow(informer, k.Put, k.Remove); err != nil {
		return nil, err
	}
	var err error
	c.Reconciler, err = reconcile.New("rolebinding", informer, env.Log, c.reconcile)
	return c, err
}

func (c *Controller) reconcile(ctx context.Context, o *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().RoleBindings(o.Namespace)
	if reconcile.Deleting(o) {
		list, news := conditions.Deleting(o.Status.Conditions, conditions.MessageDeleting, o.Generation)
		if !news {
			return 0, nil
		}
		o.Status.Conditions = list
		_, err := api.UpdateStatus(ctx, o, metav1.UpdateOptions{})
		return 0, err
	}
	ready := conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", o.Generation)
	binding := convert(o)
	if err := binding.Validate(); err != nil {
		ready = conditions.False(v1alpha1.ConditionReady, "Invalid", err.Error(), o.Generation)
	}
	status := *o.Status.DeepCopy()
	status.Conditions = conditions.Set(status.Conditions, ready)
	if apiequality.Semantic.DeepEqual(o.Status, status) {
		return 0, nil
	}
	o.Status = status
	_, err := api.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return 0, err
}
