package rolebinding

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	listers "freshet/api/generated/listers/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/identity/access"
)

// Controller writes to the status whether a binding is in effect.
type Controller struct {
	*reconcile.Reconciler[*object]
	client versioned.Interface
	roles  listers.RoleLister
}

// reasonRoleNotFound is the reason of Ready for a binding to a deleted role.
const reasonRoleNotFound = "RoleNotFound"

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{client: env.Client, roles: cloud.Roles().Lister()}
	informer := cloud.RoleBindings().Informer()
	if err := reconcile.Follow(informer, k.Put, k.Remove); err != nil {
		return nil, err
	}
	bindingsOf, err := reconcile.Index(informer, "role", func(o *object) string {
		if o.Spec.RoleRef.Kind != "Role" {
			return ""
		}
		return o.Spec.RoleRef.Name
	})
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("rolebinding", informer, env.Log, c); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.Roles().Informer(), func(role metav1.Object) {
		for _, binding := range bindingsOf(role.GetNamespace(), role.GetName()) {
			c.Enqueue(binding)
		}
	})
}

// Reconcile implements reconcile.Handler.
func (c *Controller) Reconcile(ctx context.Context, o *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().RoleBindings(o.Namespace)
	status := *o.Status.DeepCopy()
	if reconcile.Deleting(o) {
		status.Conditions, _ = conditions.Deleting(status.Conditions, conditions.MessageDeleting, o.Generation)
		return 0, reconcile.WriteStatus(ctx, api, o, &o.Status, status)
	}
	ready := conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", o.Generation)
	binding := convert(o)
	if err := binding.Validate(); err != nil {
		ready = conditions.False(v1alpha1.ConditionReady, "Invalid", err.Error(), o.Generation)
	} else if !c.roleExists(o) {
		ready = conditions.False(v1alpha1.ConditionReady, reasonRoleNotFound,
			"Role "+o.Spec.RoleRef.Name+
				" does not exist, so the binding grants nothing; create the role or delete the binding", o.Generation)
	}
	status.Conditions = conditions.Set(status.Conditions, ready)
	return 0, reconcile.WriteStatus(ctx, api, o, &o.Status, status)
}

func (c *Controller) roleExists(o *object) bool {
	ref := o.Spec.RoleRef
	if _, predefined := access.FindRole(ref.Kind, ref.Name); predefined {
		return true
	}
	role, err := c.roles.Roles(o.Namespace).Get(ref.Name)
	return err == nil && !reconcile.Deleting(role)
}
