package rolebinding

import (
	"context"
	"log/slog"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/controllers/loop"
)

// Controller says in status whether a binding is in force.
type Controller struct {
	*loop.Reconciler[*v1alpha1.RoleBinding]
	client versioned.Interface
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, feed Feed, log *slog.Logger) (*Controller, error) {
	c := &Controller{client: client}
	informer := informers.Cloud().V1alpha1().RoleBindings().Informer()
	if err := loop.Follow(informer, feed.Put, feed.Remove); err != nil {
		return nil, err
	}
	var err error
	c.Reconciler, err = loop.New("rolebinding", informer, log, c.reconcile)
	return c, err
}

func (c *Controller) reconcile(ctx context.Context, o *v1alpha1.RoleBinding) (time.Duration, error) {
	if loop.Deleting(o) {
		return 0, nil
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
	_, err := c.client.CloudV1alpha1().RoleBindings(o.Namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return 0, err
}
