package serviceaccountbinding

import (
	"context"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	listers "freshet/api/generated/listers/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/finalizers"
	"freshet/internal/controlplane/reconcile/owners"
)

// Controller writes to the status whether bindings can be used.
type Controller struct {
	*reconcile.Reconciler[*object]
	client   versioned.Interface
	accounts listers.ServiceAccountLister
	plan     *pools.Plan
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{client: env.Client, plan: k.plan, accounts: cloud.ServiceAccounts().Lister()}
	informer := cloud.ServiceAccountBindings().Informer()
	bindingsOf, err := reconcile.Index(informer, "binding by account",
		func(b *object) string { return b.Spec.ServiceAccountName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("serviceaccountbinding", informer, env.Log, c.reconcile); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.ServiceAccounts().Informer(), func(account metav1.Object) {
		for _, binding := range bindingsOf(account.GetNamespace(), account.GetName()) {
			c.Enqueue(binding)
		}
	})
}

func (c *Controller) reconcile(ctx context.Context, binding *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().ServiceAccountBindings(binding.Namespace)
	if reconcile.Deleting(binding) {
		if list, changed := conditions.Deleting(binding.Status.Conditions, conditions.MessageDeleting,
			binding.Generation); changed {
			binding.Status.Conditions = list
			_, err := api.UpdateStatus(ctx, binding, metav1.UpdateOptions{})
			return 0, err // the status change queues the binding again
		}
		if !finalizers.Has(binding, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, binding, Finalizer, api.Patch)
	}
	account, err := c.accounts.ServiceAccounts(binding.Namespace).Get(binding.Spec.ServiceAccountName)
	if err == nil && account.DeletionTimestamp == nil && owners.Add(binding, account, "ServiceAccount") {
		_, err := api.Update(ctx, binding, metav1.UpdateOptions{})
		return 0, err // the update queues the binding again
	}
	list := describe(c.plan, binding, err == nil)
	if apiequality.Semantic.DeepEqual(binding.Status.Conditions, list) {
		return 0, nil
	}
	binding.Status.Conditions = list
	_, err = api.UpdateStatus(ctx, binding, metav1.UpdateOptions{})
	return 0, err
}

// describe returns the conditions of a binding.
func describe(plan *pools.Plan, binding *object, accountExists bool) []v1alpha1.Condition {
	generation := binding.Generation
	member := binding.Spec.PoolMemberRef
	list := conditions.Set(slices.Clone(binding.Status.Conditions), conditions.True("IAMAccountReady", "NotRequired",
		"the pool member has no identity system of its own", generation))
	ready := conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", generation)
	if _, _, ok := plan.Member(&member); !ok {
		ready = conditions.False(v1alpha1.ConditionReady, "PoolMemberNotFound",
			"pool member "+member.Name+" does not exist; recreate the binding with another one", generation)
	}
	if !accountExists {
		ready = conditions.False(v1alpha1.ConditionReady, "ServiceAccountNotFound",
			"service account "+binding.Spec.ServiceAccountName+" does not exist; create it", generation)
	}
	return conditions.Set(list, ready)
}
